/**
 * An agent for Foldwork that proposes tags for articles. Copy it and replace `propose` with your own work.
 *
 *     npm install
 *     FOLDWORK_SERVER=http://127.0.0.1:8080 FOLDWORK_AGENT=... FOLDWORK_TOKEN=sk_... node agent.ts
 *
 * The token is a key that is bound to the agent, so it decides nothing. The agent listens on its channel. It claims each task that it gets, delivers a proposal with an
 * effect, and leaves the review to people. The server sends unacknowledged events again, also after a lost connection,
 * and every action of the agent is safe to repeat. Node 22.18 or newer runs this file directly.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { RealtimeClient } from '@supabase/realtime-js'

const SERVER = process.env.FOLDWORK_SERVER ?? 'http://127.0.0.1:8080'
const TOKEN = process.env.FOLDWORK_TOKEN
const AGENT = process.env.FOLDWORK_AGENT ?? ''
// A credential is valid for an hour and is renewed before that.
const CONNECTION_MS = 50 * 60 * 1000

type Article = { title?: string; body?: string; _version: number }
type Task = { id: string; title: string; source: { aggregate_id: string } }
type Delivery = { event: string; payload: { task: Task; position: number } }

class Refused extends Error {
  readonly status: number

  constructor(status: number, body: { error: string }) {
    super(`${status}: ${body.error}`)
    this.status = status
  }
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { authorization: `Bearer ${TOKEN}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  const response = await fetch(`${SERVER}/api/v1${path}`, { method, headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (!response.ok) throw new Refused(response.status, answer)
  return answer as T
}

/** Does the actual work: returns the three most frequent words of at least five letters in the article. */
function propose(article: Article): string[] {
  const counts = new Map<string, number>()
  for (const [word] of `${article.title ?? ''} ${article.body ?? ''}`.toLowerCase().matchAll(/\p{L}{5,}/gu)) {
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([word]) => word)
}

/** Returns whether the task was completed, claimed or canceled meanwhile. */
const isOver = (error: unknown) => error instanceof Refused && (error.status === 404 || error.status === 409)

/** Claims a task and delivers a proposal. Returns early if the task is done or belongs to another agent. */
async function work(agent: string, task: Task): Promise<void> {
  try {
    await call('POST', `/mailbox/${task.id}/claim`, { agent_id: agent, lease_seconds: 60 })
  } catch (error) {
    if (isOver(error)) return
    throw error
  }
  const article = await call<Article>('GET', `/aggregates/${task.source.aggregate_id}`)
  const tags = propose(article)
  await call('POST', `/mailbox/${task.id}/complete`, {
    agent_id: agent,
    artifact: {
      name: 'tags',
      data: { tags },
      // Approval appends this event to the article.
      // A person who changed the article in the meantime is not overwritten: the approval is then stale.
      effect: { event_type: 'article.updated', payload: { tags }, expected_version: article._version },
    },
    message: `These words are used most: ${tags.join(', ')}.`,
  })
  console.log(`delivered '${task.title}'`)
}

/** Answers a question. A real agent would read it first. */
async function answer(agent: string, task: Task): Promise<void> {
  try {
    const text = 'I count the words of five letters or more.'
    await call('POST', `/mailbox/${task.id}/messages`, { agent_id: agent, text })
  } catch (error) {
    if (!isOver(error)) throw error
  }
}

/** Processes the agent's events in order until the connection ends. */
async function listen(agent: string): Promise<void> {
  const connection = await call<{
    url: string
    anon_key: string
    channels: { channel: string }[]
    heartbeat_interval: number
  }>('POST', '/agents/connect', { agent_ids: [agent] })
  const client = new RealtimeClient(connection.url, { params: { apikey: connection.anon_key } })
  const channel = client.channel(connection.channels[0]!.channel, {
    config: { private: true, broadcast: { ack: true, self: false } },
  })
  // Processes deliveries in order. The first failure ends the connection, and the event is sent again after the next
  // join.
  let last: Promise<void> = Promise.resolve()
  const take = async ({ event, payload }: Delivery): Promise<void> => {
    if (['task.created', 'task.assigned', 'task.resumed'].includes(event)) await work(agent, payload.task)
    if (['task.asked', 'task.changes_requested', 'task.answered'].includes(event)) await answer(agent, payload.task)
    await channel.send({ type: 'broadcast', event: 'ack', payload: { position: payload.position } })
  }
  const beats = setInterval(() => {
    call('POST', '/agents/heartbeat', { agent_ids: [agent] }).catch((error) => console.log(`heartbeat: ${error}`))
  }, connection.heartbeat_interval)
  try {
    await new Promise<void>((over, failed) => {
      const renewal = setTimeout(over, CONNECTION_MS)
      const fail = (error: unknown) => {
        clearTimeout(renewal)
        failed(error)
      }
      channel.on('broadcast', { event: '*' }, (message) => {
        last = last.then(() => take(message as unknown as Delivery))
        last.catch(fail)
      })
      channel.subscribe((state, error) => {
        if (state === 'SUBSCRIBED') console.log('listening')
        else fail(error ?? new Error(state))
      })
    })
  } finally {
    clearInterval(beats)
    await client.removeAllChannels()
    await client.disconnect()
  }
}

const agent = AGENT
for (let wait = 1; ; wait = Math.min(wait * 2, 30)) {
  try {
    await listen(agent)
    wait = 1
  } catch (error) {
    console.log(`the connection ended: ${error}`)
    await sleep(wait * 1000)
  }
}
