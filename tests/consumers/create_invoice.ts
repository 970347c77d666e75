// Creates and reads an invoice through a generated client, as its user would write it.
import createClient from "openapi-fetch";
import type { components, paths } from "./platform.d.ts";

const { BASE_URL, TENANT, API_KEY, CUSTOMER, PRODUCT } = (globalThis as any).process.env as Record<string, string>;
const client = createClient<paths>({ baseUrl: BASE_URL!, headers: { Authorization: `Bearer ${API_KEY}` } });
const header = { "x-tenant-slug": TENANT! };

const draft: components["schemas"]["Invoice"] = {
  customerId: CUSTOMER!,
  currency: "EUR",
  items: [{ productId: PRODUCT!, quantity: 3, unitPrice: 12.5 }, { productId: PRODUCT!, quantity: 3, unitPrice: 12.5 }],
  autoPostLedger: true,
};
// @ts-expect-error a misspelt member is found by the compiler
const misspelt: components["schemas"]["Invoice"] = { ...draft, autoPost: true };

const made = await client.POST("/api/v1/finance/invoices", {
  params: { header: { ...header, "Idempotency-Key": "generated-2" } },
  body: draft,
});
if (!made.data) throw new Error(JSON.stringify(made.error));
const path = { id: made.data.id };
const approved = await client.POST("/api/v1/finance/invoices/{id}/approve", { params: { header, path } });
if (!approved.data) throw new Error(JSON.stringify(approved.error));
const page = await client.GET("/api/v1/finance/invoices", { params: { header, query: { limit: 10 } } });
if (!page.data?.data.some((each) => each.id === made.data.id)) throw new Error("the list lacks the invoice");

const refused = await client.POST("/api/v1/finance/invoices", { params: { header }, body: misspelt });
if (refused.error?.errors?.[0]?.pointer !== "#/autoPost") throw new Error(JSON.stringify(refused));
console.log(JSON.stringify(approved.data));
