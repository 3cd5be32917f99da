// Runs stock clients in JavaScript against a running server through all required operations.
//
//   node stock.mjs CLIENT      with FOLDWORK_SERVER and FOLDWORK_TOKEN; prints `restart` when the server may be
//                              restarted, and continues after reading a line.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const { FOLDWORK_SERVER: server, FOLDWORK_TOKEN: token } = process.env
const LIMIT_MS = 60_000

async function call(method, path, body) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${server}/api/v1${path}`, { method, headers, body: JSON.stringify(body) })
  const answer = await response.json()
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
  return answer
}

function within(promise, what) {
  let timer
  const late = new Promise((_, failed) => {
    timer = setTimeout(() => failed(new Error(`${what}: nothing after ${LIMIT_MS} ms`)), LIMIT_MS)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** The received messages. Callers can wait for a message. */
class Inbox {
  seen = []
  waiting = []

  push(message) {
    this.seen.push(message)
    this.waiting = this.waiting.filter(({ wanted, found }) => !wanted(message) || found(message))
  }

  wait(what, wanted) {
    const known = this.seen.find(wanted)
    return within(known ? Promise.resolve(known) : new Promise((found) => this.waiting.push({ wanted, found })), what)
  }
}

/** Opens channels of `@supabase/realtime-js`, which `@supabase/supabase-js` also provides. */
function supabase(open) {
  return (url, key, name) => {
    const { client, close, channel } = open(url, key, name)
    const states = new Inbox()
    const inbox = new Inbox()
    channel.on('broadcast', { event: '*' }, (message) => inbox.push(message))
    channel.subscribe((state, error) => states.push({ state, error }))
    return {
      inbox,
      states,
      joined: () => states.wait('joining', ({ state }) => state === 'SUBSCRIBED'),
      refused: () => states.wait('a refusal', ({ state }) => state === 'CHANNEL_ERROR' || state === 'TIMED_OUT'),
      send: (event, payload) => channel.send({ type: 'broadcast', event, payload }),
      leave: () => channel.unsubscribe(),
      close: () => close(client),
    }
  }
}

const config = { config: { private: true, broadcast: { ack: true, self: true } } }

function realtime(RealtimeClient, options) {
  return supabase((url, apikey, name) => {
    const client = new RealtimeClient(url, { params: { apikey }, heartbeatIntervalMs: 1_000, ...options })
    return { client, channel: client.channel(name, config), close: (client) => client.disconnect() }
  })
}

const CLIENTS = {
  'realtime-js': async () => realtime((await import('@supabase/realtime-js')).RealtimeClient),
  'realtime-js with vsn 1': async () =>
    realtime((await import('@supabase/realtime-js')).RealtimeClient, { vsn: '1.0.0' }),
  'realtime-js 2.90': async () => realtime((await import('realtime-js-2.90')).RealtimeClient),
  'supabase-js': async () => {
    const { createClient } = await import('@supabase/supabase-js')
    return supabase((_, key, name) => {
      const client = createClient(server, key)
      return { client, channel: client.channel(name, config), close: (client) => client.removeAllChannels() }
    })
  },
  phoenix: async () => {
    const { Socket } = await import('phoenix')
    const storage = { getItem: () => null, setItem() {} }
    return (url, apikey, name) => {
      const socket = new Socket(url, { params: { apikey }, transport: WebSocket, sessionStorage: storage })
      const inbox = new Inbox()
      const states = new Inbox()
      socket.connect()
      socket.onError((error) => states.push({ state: 'error', error }))
      const channel = socket.channel(`realtime:${name}`, { config: config.config })
      channel.on('broadcast', (message) => inbox.push(message))
      const answered = (push) =>
        new Promise((ok, failed) =>
          push.receive('ok', () => ok('ok')).receive('error', failed).receive('timeout', () => failed('timeout')))
      channel.join()
        .receive('ok', () => states.push({ state: 'ok' }))
        .receive('error', (error) => states.push({ state: 'error', error }))
      return {
        inbox,
        states,
        joined: () => states.wait('joining', ({ state }) => state === 'ok'),
        refused: () => states.wait('a refusal', ({ state }) => state === 'error'),
        send: (event, payload) => answered(channel.push('broadcast', { type: 'broadcast', event, payload })),
        leave: () => answered(channel.leave()),
        close: () => new Promise((closed) => socket.disconnect(closed)),
      }
    }
  },
}

const name = process.argv[2]
assert.ok(CLIENTS[name], `one of ${Object.keys(CLIENTS).join(', ')}`)
const open = await CLIENTS[name]()
const input = createInterface({ input: process.stdin })

const agent = await call('POST', '/agents', {
  name: `${name} ${process.pid}`, description: 'A stock client.', subscribed_traits: [], capabilities: {},
})
const { url, anon_key, channels } = await call('POST', '/agents/connect', { agent_ids: [agent.id] })
const task = (title) => call('POST', '/mailbox', { title, assignee_type: 'agent', assignee_id: agent.id })
const isOf = (id) => (message) => message.event === 'task.created' && message.payload.task.id === id

// The client joins, broadcasts, and receives its own message.
const client = open(url, anon_key, channels[0].channel)
await client.joined()
assert.equal(await within(client.send('note', { n: 1 }), 'sending'), 'ok')
assert.deepEqual((await client.inbox.wait('its own message', ({ event }) => event === 'note')).payload, { n: 1 })

// The client receives a task and acknowledges it.
const first = await task('first')
const told = await client.inbox.wait('a task', isOf(first.id))
assert.equal(told.payload.task.title, 'first')
assert.equal(await within(client.send('ack', { position: told.payload.position }), 'acknowledging'), 'ok')

// The client broadcasts on a channel over HTTP.
const said = await fetch(`${server}/realtime/v1/api/broadcast`, {
  method: 'POST',
  headers: { apikey: anon_key, authorization: `Bearer ${anon_key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ messages: [{ topic: channels[0].channel, event: 'shout', payload: { n: 2 }, private: true }] }),
})
assert.equal(said.status, 202)
assert.deepEqual((await client.inbox.wait('what HTTP said', ({ event }) => event === 'shout')).payload, { n: 2 })

// The server rejects a wrong credential, and the client on the channel of another agent.
const wrong = open(url, `${anon_key.slice(0, -4)}aaaa`, channels[0].channel)
await wrong.refused()
await wrong.close()
const other = open(url, anon_key, 'agent:00000000-0000-7000-8000-000000000000')
await other.refused()
await other.close()

// The client reconnects automatically after a restart, and receives the events that it has not acknowledged.
const second = await task('second')
await client.inbox.wait('a second task', isOf(second.id))
client.states.seen.length = 0
client.inbox.seen.length = 0
console.log('restart')
await within(once(input, 'line'), 'the restart')
await client.joined()
await client.inbox.wait('the second task again', isOf(second.id))
const third = await task('third')
await client.inbox.wait('a third task', isOf(third.id))
assert.ok(!client.inbox.seen.some(isOf(first.id)), 'what was acknowledged is not told again')

// The client leaves the channel and receives no more messages.
assert.equal(await within(client.leave(), 'leaving'), 'ok')
await client.close()
console.log('passed')
process.exit(0)
