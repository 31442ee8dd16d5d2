// SPDX-License-Identifier: PostgreSQL
// Google's own library does with each kind of credentials what the puller does: one request to
// Pub/Sub, at Google's addresses, for which it has to get a token.
//
// node credentials.js SCOPE FILE… ("metadata" for the metadata server)
'use strict';
const {Compute, GoogleAuth} = require('google-auth-library');
const fs = require('fs');

const url = 'https://pubsub.googleapis.com/v1/projects/p/subscriptions/';

async function use(scope, file) {
  if (file === 'metadata') {
    return new Compute({scopes: [scope]}).request({url: url + 'metadata'});
  }
  const json = JSON.parse(fs.readFileSync(file));
  const client = await new GoogleAuth({keyFile: file, scopes: [scope]}).getClient();
  if (!scope.endsWith('/pubsub')) {
    return client.getAccessToken();
  }
  // As the clients of Google's APIs have it.
  client.useJWTAccessWithScope = json.type === 'service_account';
  return client.request({url: url + file.replace(/.*\/|\.json$/g, '')});
}

(async () => {
  const [scope, ...files] = process.argv.slice(2);
  for (const file of files) {
    await use(scope, file).catch(error => console.log(`${file}: ${error.message}`));
  }
})();
