// SPDX-License-Identifier: PostgreSQL
//
// clients.js URL TOKEN: Google's own Node.js clients against a Pub/Sub server, over REST, in TAP.
'use strict';

const assert = require('node:assert');
const { v1 } = require('@google-cloud/pubsub');
const { google } = require('googleapis');

const [, , address, token] = process.argv;
const url = new URL(address);
let number = 0;

async function test(name, run) {
  number++;
  try {
    await run();
    console.log(`ok ${number} - ${name}`);
  } catch (error) {
    console.log(`not ok ${number} - ${name}`);
    console.log(String(error.stack).replace(/^/gm, '# '));
    process.exitCode = 1;
  }
}

function credentials() {
  const client = new google.auth.OAuth2();
  client.setCredentials({ access_token: token, expiry_date: Date.now() + 3600 * 1000 });
  return client;
}

// Over REST the generated clients hand out the HTTP status and the body of an error as they are.
function failsWith(code, status) {
  return error => {
    assert.strictEqual(error.code, code);
    assert.strictEqual(JSON.parse(error.message).error.status, status);
    return true;
  };
}

// The generated clients of @google-cloud/pubsub, which speak gRPC unless told to fall back to REST.
async function generated() {
  const options = {
    apiEndpoint: url.hostname,
    port: Number(url.port),
    protocol: 'http',
    fallback: true,
    projectId: 'p',
    auth: new google.auth.GoogleAuth({ authClient: credentials(), projectId: 'p' }),
  };
  const publisher = new v1.PublisherClient(options);
  const subscriber = new v1.SubscriberClient(options);
  const topic = 'projects/p/topics/generated';
  const subscription = 'projects/p/subscriptions/generated-sub';
  const snapshot = 'projects/p/snapshots/generated-snap';
  let received;

  await test('v1: a topic is created', async () => {
    const [made] = await publisher.createTopic({ name: topic, labels: { a: 'b' } });
    assert.strictEqual(made.name, topic);
    assert.deepStrictEqual({ ...made.labels }, { a: 'b' });
  });
  await test('v1: a topic that exists is an error of that kind', async () => {
    await assert.rejects(publisher.createTopic({ name: topic }), failsWith(409, 'ALREADY_EXISTS'));
  });
  await test('v1: a subscription is created', async () => {
    const [made] = await subscriber.createSubscription({
      name: subscription,
      topic,
      ackDeadlineSeconds: 30,
      enableExactlyOnceDelivery: true,
      retryPolicy: { minimumBackoff: { seconds: 1 }, maximumBackoff: { seconds: 2 } },
      deadLetterPolicy: { deadLetterTopic: topic, maxDeliveryAttempts: 5 },
    });
    assert.strictEqual(made.ackDeadlineSeconds, 30);
    assert.strictEqual(Number(made.retryPolicy.minimumBackoff.seconds), 1);
    assert.strictEqual(made.state, 'ACTIVE');
  });
  await test('v1: a subscription is changed', async () => {
    const [changed] = await subscriber.updateSubscription({
      subscription: { name: subscription, ackDeadlineSeconds: 60 },
      updateMask: { paths: ['ack_deadline_seconds'] },
    });
    assert.strictEqual(changed.ackDeadlineSeconds, 60);
  });
  await test('v1: messages are published', async () => {
    const [answer] = await publisher.publish({
      topic,
      messages: [
        { data: Buffer.from('grüße'), attributes: { idempotency_key: 'k1' } },
        { data: Buffer.from([0, 255, 254]), orderingKey: '' },
      ],
    });
    assert.strictEqual(answer.messageIds.length, 2);
  });
  await test('v1: and pulled', async () => {
    const [answer] = await subscriber.pull({ subscription, maxMessages: 10 });
    received = answer.receivedMessages;
    assert.strictEqual(received.length, 2);
    assert.strictEqual(Buffer.from(received[0].message.data).toString(), 'grüße');
    assert.deepStrictEqual({ ...received[0].message.attributes }, { idempotency_key: 'k1' });
    assert.deepStrictEqual([...Buffer.from(received[1].message.data)], [0, 255, 254]);
    assert.ok(Math.abs(Number(received[0].message.publishTime.seconds) - Date.now() / 1000) < 60);
    assert.strictEqual(received[0].deliveryAttempt, 1);
  });
  await test('v1: extended', async () => {
    const ackIds = [received[0].ackId];
    await subscriber.modifyAckDeadline({ subscription, ackIds, ackDeadlineSeconds: 20 });
  });
  await test('v1: acknowledged', async () => {
    await subscriber.acknowledge({ subscription, ackIds: [received[0].ackId] });
  });
  await test('v1: a failed ack id is named in the details', async () => {
    const ackIds = received.map(message => message.ackId);
    await assert.rejects(subscriber.acknowledge({ subscription, ackIds }), error => {
      const [detail] = JSON.parse(error.message).error.details;
      assert.strictEqual(detail.reason, 'EXACTLY_ONCE_ACKID_FAILURE');
      assert.deepStrictEqual(detail.metadata, { [ackIds[0]]: 'PERMANENT_FAILURE_INVALID_ACK_ID' });
      return true;
    });
  });
  await test('v1: a snapshot, and a seek to it', async () => {
    await publisher.publish({ topic, messages: [{ data: Buffer.from('kept') }] });
    const [made] = await subscriber.createSnapshot({ name: snapshot, subscription });
    assert.strictEqual(made.topic, topic);
    await subscriber.seek({ subscription, time: { seconds: 4102444800 } });
    await subscriber.seek({ subscription, snapshot });
    const [answer] = await subscriber.pull({ subscription, maxMessages: 10 });
    assert.strictEqual(Buffer.from(answer.receivedMessages[0].message.data).toString(), 'kept');
    await subscriber.deleteSnapshot({ snapshot });
  });
  await test('v1: lists', async () => {
    const [topics] = await publisher.listTopics({ project: 'projects/p' });
    assert.ok(topics.some(member => member.name === topic));
    const [names] = await publisher.listTopicSubscriptions({ topic });
    assert.deepStrictEqual(names, [subscription]);
  });
  await test('v1: what does not exist is an error of that kind', async () => {
    const pull = subscriber.pull({ subscription: subscription + '-not', maxMessages: 1 });
    await assert.rejects(pull, failsWith(404, 'NOT_FOUND'));
  });
  await test('v1: deleted', async () => {
    await subscriber.deleteSubscription({ subscription });
    await publisher.deleteTopic({ topic });
    await assert.rejects(publisher.getTopic({ topic }), failsWith(404, 'NOT_FOUND'));
  });
}

// The client that googleapis makes from the discovery document.
async function discovered() {
  const pubsub = google.pubsub({ version: 'v1', rootUrl: url.origin + '/', auth: credentials() });
  const { topics, subscriptions, snapshots } = pubsub.projects;
  const topic = 'projects/p/topics/discovered';
  const subscription = 'projects/p/subscriptions/discovered-sub';

  await test('googleapis: a topic and a subscription', async () => {
    await topics.create({ name: topic, requestBody: {} });
    const { data } = await subscriptions.create({
      name: subscription,
      requestBody: {
        topic,
        ackDeadlineSeconds: 20,
        enableMessageOrdering: true,
        filter: 'attributes:wanted',
      },
    });
    assert.strictEqual(data.enableMessageOrdering, true);
    const found = await subscriptions.get({ subscription });
    assert.strictEqual(found.data.filter, 'attributes:wanted');
  });
  await test('googleapis: published, pulled, extended, acknowledged', async () => {
    const message = text => ({
      data: Buffer.from(text).toString('base64'),
      orderingKey: 'key',
      attributes: { wanted: '' },
    });
    await topics.publish({ topic, requestBody: { messages: ['one', 'two'].map(message) } });
    await topics.publish({ topic, requestBody: { messages: [{ data: 'AAAA' }] } });
    const { data } = await subscriptions.pull({ subscription, requestBody: { maxMessages: 10 } });
    const texts = data.receivedMessages.map(each => Buffer.from(each.message.data, 'base64').toString());
    assert.deepStrictEqual(texts, ['one', 'two']);
    const ackIds = data.receivedMessages.map(each => each.ackId);
    const longer = { ackIds, ackDeadlineSeconds: 30 };
    await subscriptions.modifyAckDeadline({ subscription, requestBody: longer });
    await subscriptions.acknowledge({ subscription, requestBody: { ackIds } });
  });
  await test('googleapis: changed', async () => {
    const { data } = await subscriptions.patch({
      name: subscription,
      requestBody: { subscription: { labels: { a: 'b' } }, updateMask: 'labels' },
    });
    assert.deepStrictEqual(data.labels, { a: 'b' });
  });
  await test('googleapis: pages', async () => {
    const { data } = await subscriptions.list({ project: 'projects/p', pageSize: 1 });
    assert.strictEqual(data.subscriptions.length, 1);
  });
  await test('googleapis: an error', async () => {
    await assert.rejects(topics.get({ topic: topic + '-not' }), error => {
      assert.strictEqual(error.status ?? error.code, 404);
      return true;
    });
  });
  await test('googleapis: a snapshot, a seek, the end', async () => {
    const snapshot = 'projects/p/snapshots/discovered-snap';
    await snapshots.create({ name: snapshot, requestBody: { subscription } });
    await subscriptions.seek({ subscription, requestBody: { time: '2000-01-01T00:00:00Z' } });
    await snapshots.delete({ snapshot });
    await subscriptions.delete({ subscription });
    await topics.delete({ topic });
  });
}

generated()
  .then(discovered)
  .then(() => console.log(`1..${number}`));
