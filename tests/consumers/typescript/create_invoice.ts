// Creates, lists and updates through a generated client, and is throttled, as its user would write it.
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

// Let time pass on the sandbox's clock; with a real platform this is a timer.
async function wait(seconds: number): Promise<void> {
  const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ advance_s: seconds }) };
  if (!(await fetch(`${BASE_URL}/_sandbox/clock`, init)).ok) throw new Error("the clock does not move");
}

async function reprice(price: number, key: string): Promise<void> {
  while (true) {
    const changed = await client.PATCH("/api/v1/catalog/products/{id}", {
      params: { header: { ...header, "Idempotency-Key": key }, path: { id: PRODUCT! } },
      headers: { "Content-Type": "application/merge-patch+json" },
      body: { unitPrice: price },
    });
    if (changed.data?.unitPrice === price) return;
    if (changed.response.status !== 429) throw new Error(JSON.stringify(changed));
    await wait(Number(changed.response.headers.get("Retry-After")));
  }
}

for (let number = 0; number < 60; number++) await reprice(number + 0.25, `price-${number}`);
console.log(JSON.stringify(approved.data));
