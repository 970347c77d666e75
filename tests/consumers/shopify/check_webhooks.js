// Shopify's own library: signs each body of a list, and says whether each delivery is valid.
// Arguments: a JSON file {secret, bodies: [text], deliveries: [{body, headers}]}. Prints {signatures, results}.
import {readFileSync} from 'node:fs';
import '@shopify/shopify-api/adapters/node';
import {LogSeverity, shopifyApi} from '@shopify/shopify-api';
import {createSHA256HMAC} from '@shopify/shopify-api/runtime';

const {secret, bodies, deliveries} = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const {webhooks} = shopifyApi({
  apiKey: 'app', apiSecretKey: secret, hostName: 'app.example', isEmbeddedApp: false, apiVersion: '2026-10',
  isTesting: true, logger: {level: LogSeverity.Error, log: () => undefined},
});
const signatures = [];
for (const body of bodies) signatures.push(await createSHA256HMAC(secret, body));
const results = [];
for (const {body, headers} of deliveries) {
  const {valid, webhookType, webhookId} = await webhooks.validate({rawBody: body, rawRequest: {headers}});
  results.push({valid, kind: webhookType ?? null, id: webhookId ?? null});
}
console.log(JSON.stringify({signatures, results}));
