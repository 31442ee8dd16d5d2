// SPDX-License-Identifier: PostgreSQL
//
// A consumer of Pub/Sub that applies payments. What makes it exact: each message's key is claimed by
// inbox_accept() in the transaction of its work, and the message is acknowledged only after COMMIT.
//
//   SUBSCRIPTION=projects/P/subscriptions/S PGHOST=… PGDATABASE=… node consumer.js
'use strict';

const { Duration, PubSub } = require('@google-cloud/pubsub');
const { Pool } = require('pg');

const source = 'ledger';
const pool = new Pool({ max: 4 });
const pubsub = new PubSub({ projectId: process.env.SUBSCRIPTION.split('/')[1] });
const subscription = pubsub.subscription(process.env.SUBSCRIPTION, {
  flowControl: { maxMessages: 20 },
  // Leases are extended all the time; what a killed process held comes again when they end.
  maxAckDeadline: Duration.from({ seconds: 10 }),
});

// Whatever the consumer does with a message, by this connection.
async function applyPayment(client, key, payment) {
  await client.query('INSERT INTO effect (key, account, amount) VALUES ($1, $2, $3)',
    [key, payment.account, payment.amount]);
  await client.query('UPDATE account SET balance = balance - $1 WHERE id = 0', [payment.amount]);
  await client.query('UPDATE account SET balance = balance + $1 WHERE id = $2',
    [payment.amount, payment.account]);
}

// COMMIT of a failed transaction succeeds, with the tag ROLLBACK; and one whose wait for a standby was
// cancelled succeeds with a warning. Neither is durable.
async function commit(client) {
  let warned = false;
  const hear = notice => { warned ||= notice.code !== '00000'; };
  client.on('notice', hear);
  try {
    const result = await client.query('COMMIT');
    return result.command === 'COMMIT' && !warned;
  } finally {
    client.off('notice', hear);
  }
}

// True when the work is done, now or by an earlier delivery of the key.
async function processMessage(client, message) {
  const key = message.attributes.idempotency_key;
  await client.query('BEGIN');
  const claim = await client.query('SELECT inbox_accept($1, $2, $3) AS first', [key, message.data, source]);
  if (claim.rows[0].first) {
    await applyPayment(client, key, JSON.parse(message.data));
  }
  return commit(client);
}

async function receive(message) {
  let client;
  let failure;
  try {
    client = await pool.connect();
    if (await processMessage(client, message)) {
      message.ack();
    } else {
      message.nack();
    }
  } catch (error) {
    failure = error;
    console.error(`${message.attributes.idempotency_key}: ${error.code || ''} ${error.message}`);
    message.nack();
  } finally {
    // A connection in the middle of a transaction is closed, which rolls it back.
    client?.release(failure);
  }
}

pool.on('error', error => console.error(`idle connection: ${error.message}`));
subscription.on('message', receive);
subscription.on('error', error => {
  console.error(`subscription: ${error.message}`);
  process.exit(1);
});
process.on('SIGTERM', async () => {
  await subscription.close();
  await pool.end();
});
