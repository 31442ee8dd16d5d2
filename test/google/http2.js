// SPDX-License-Identifier: PostgreSQL
// A Pub/Sub endpoint that speaks HTTP/2 alone, in front of one that does not, for tests.
//
// node http2.js DIR URL: with DIR/local.pem; the port is in DIR/http2-port once it is open. Each
// request is a line of JSON in DIR/http2-requests: its session, its verb, the pulls that are under way
// in that session with it, and what was done to it besides passing it on, as DIR/http2-mischief says:
// {VERB: {N: WHAT}} for the Nth request of a verb, from 1.
//
//   reset    it is passed on, and the stream reset in place of the answer
//   refuse   the stream is refused, and nothing is passed on
//   goaway   likewise, with all that come behind it in its session; those before it are answered
//   destroy  it is passed on, and the connection ends without a word
'use strict';
const fs = require('fs');
const http = require('http');
const http2 = require('http2');

const [dir, url] = process.argv.slice(2);
const {NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM} = http2.constants;
const pem = fs.readFileSync(`${dir}/local.pem`);
const mischief = JSON.parse(fs.readFileSync(`${dir}/http2-mischief`));
const counts = {};
let sessions = 0;

function passOn(headers, body, answer) {
  const request = http.request(url + headers[':path'],
    {method: headers[':method'], headers: {'content-type': 'application/json'}}, response => {
      const parts = [];
      response.on('data', part => parts.push(part));
      response.on('end', () => answer(response.statusCode, Buffer.concat(parts)));
    });
  request.on('error', () => {});
  request.end(body);
  return request;
}

// True when nothing is to be passed on.
function refuse(session, stream, what) {
  if (what === 'goaway') {
    // Not close(), which would say it again with a later stream.
    session.goaway(NGHTTP2_NO_ERROR, stream.id - 2);
  } else if (what === 'refuse') {
    stream.close(NGHTTP2_REFUSED_STREAM);
  }
  return what === 'goaway' || what === 'refuse';
}

function answer(session, stream, what, status, body) {
  if (what === 'reset') {
    stream.close(NGHTTP2_INTERNAL_ERROR);
  } else if (what === 'destroy') {
    session.destroy();
  } else if (!stream.destroyed) {
    stream.respond({':status': status, 'content-type': 'application/json'});
    stream.end(body);
  }
}

function take(session, stream, headers, body) {
  const verb = headers[':path'].replace(/.*:/, '');
  const state = session.state_;
  counts[verb] = (counts[verb] || 0) + 1;
  const what = (mischief[verb] || {})[counts[verb]];
  state.pulls += verb === 'pull' ? 1 : 0;
  fs.appendFileSync(`${dir}/http2-requests`, JSON.stringify({session: state.number, verb,
    pulls: state.pulls, what, authorization: headers.authorization}) + '\n');
  stream.on('close', () => state.pulls -= verb === 'pull' ? 1 : 0);
  if (!refuse(session, stream, what)) {
    const request = passOn(headers, body, (...given) => answer(session, stream, what, ...given));
    stream.on('close', () => request.destroy());
  }
}

const server = http2.createSecureServer({key: pem, cert: pem});
server.on('session', session => session.state_ = {number: ++sessions, pulls: 0});
server.on('sessionError', () => {});
server.on('stream', (stream, headers) => {
  const session = stream.session;
  const parts = [];
  stream.on('error', () => {});
  stream.on('data', part => parts.push(part));
  stream.on('end', () => {
    if (!session.destroyed) {
      take(session, stream, headers, Buffer.concat(parts));
    }
  });
});
server.listen(0, '127.0.0.1', () => {
  fs.writeFileSync(`${dir}/http2-port.new`, String(server.address().port));
  fs.renameSync(`${dir}/http2-port.new`, `${dir}/http2-port`);
});
