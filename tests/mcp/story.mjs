// The story that every JavaScript client runs, with the expected results.

import assert from 'node:assert/strict'

export const { URL: url, WRITER: writer, READER: reader, STRANGER: stranger } = process.env

const WRITING = ['act_on_task', 'append_event', 'create_article', 'publish_article', 'upload_file_link']
const READING = ['search', 'query', 'get_aggregate', 'list_events', 'get_schema', 'list_tasks', 'get_task']

const names = async (client) => (await client.listTools()).tools.map((tool) => tool.name)
const refusal = (result) => {
  assert.equal(result.isError, true)
  return JSON.parse(result.content[0].text)
}

/** Runs the story. `connect(key)` returns a connected client, and `name` distinguishes the articles of the clients. */
export async function story(name, connect) {
  const client = await connect(writer)
  const call = async (tool, args) => {
    const result = await client.callTool({ name: tool, arguments: args })
    assert.ok(!result.isError, JSON.stringify(result))
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent)
    return result.structuredContent
  }

  const listed = await names(client)
  for (const tool of [...READING, ...WRITING]) assert.ok(listed.includes(tool), tool)
  const tools = (await client.listTools()).tools
  assert.equal(tools.find((tool) => tool.name === 'query').annotations.readOnlyHint, true)
  assert.equal(tools.find((tool) => tool.name === 'publish_article').annotations.idempotentHint, true)

  // The client creates an article once.
  const title = `Sourdough by ${name}`
  const once = { title, body: 'Flour, water, time.', tags: ['bread'], idempotency_key: name }
  const { article, repeated } = await call('create_article', once)
  assert.equal(article.status, 'draft')
  assert.equal(repeated, false)
  assert.equal((await call('create_article', once)).repeated, true)
  const id = article.aggregate_id
  assert.equal((await call('publish_article', { aggregate_id: id })).article.status, 'published')

  // The client searches, queries and reads.
  assert.equal((await call('search', { query: `sourdouhg by ${name}` })).results[0].aggregate_id, id)
  const pipeline = [
    { $match: { aggregate_type: 'article' } },
    { $fold: {} },
    { $match: { title } },
    { $group: { _id: '$status', n: { $sum: 1 } } },
  ]
  assert.deepEqual((await call('query', { pipeline })).rows, [{ _id: 'published', n: 1 }])
  const history = await call('list_events', { aggregate_id: id })
  assert.deepEqual(history.events.map((event) => event.event_type), ['article.created', 'article.published'])

  assert.equal((await call('get_aggregate', { aggregate_id: id, version: 1 })).state.title, title)
  assert.ok((await call('get_schema', { aggregate_type: 'article' })).types[0].fields.length > 0)
  const event = { aggregate_id: id, aggregate_type: 'article', event_type: 'article.noted', payload: { note: 'good' } }
  assert.equal((await call('append_event', { ...event, event_id: `note-${name}` })).repeated, false)
  assert.equal((await call('append_event', { ...event, event_id: `note-${name}` })).repeated, true)
  assert.ok(Array.isArray((await call('list_tasks', { status: 'any' })).tasks))

  // A file's bytes bypass the model and go to the URL of the link.
  const link = await call('upload_file_link', { filename: `${name.replaceAll(/[^a-z0-9]+/gi, '-')}.txt`, max_bytes: 100 })
  const sent = () => fetch(link.url, { method: link.method, body: 'Flour, water, time.' })
  const stored = await sent()
  assert.equal(stored.status, 201)
  assert.equal((await stored.json()).path, link.path)
  assert.equal((await sent()).status, 409)

  // Errors contain a code and the position of the mistake.
  const typo = await client.callTool({ name: 'query', arguments: { pipeline: [{ $mach: {} }] } })
  assert.equal(refusal(typo).code, 40324)
  const missing = await client.callTool({ name: 'get_aggregate', arguments: { aggregate_id: 'nothing' } })
  assert.equal(refusal(missing).code, 'not_found')
  const wrong = await client.callTool({ name: 'search', arguments: { query: 'x', limit: 1000 } })
  assert.equal(refusal(wrong).details[0].pointer, '/limit')
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }))

  // The client lists and reads resources, and uses prompts and completions.
  const resources = (await client.listResources()).resources.map((resource) => resource.uri)
  assert.ok(resources.includes('foldwork://operators') && resources.includes('schema://article'))
  const templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate)
  assert.ok(templates.includes('aggregate://{aggregate_id}'))
  const read = async (uri) => (await client.readResource({ uri })).contents[0].text
  assert.equal(JSON.parse(await read(`aggregate://${id}`)).state.title, title)
  assert.ok((await read('foldwork://operators')).includes('$group'))
  await assert.rejects(client.readResource({ uri: 'aggregate://nothing' }))
  const prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name)
  assert.deepEqual(prompts, ['review_task', 'explain_pipeline'])
  const asked = { name: 'explain_pipeline', arguments: { pipeline: JSON.stringify(pipeline) } }
  assert.ok((await client.getPrompt(asked)).messages[0].content.text.includes('$group'))
  const completion = await client.complete({
    ref: { type: 'ref/resource', uri: 'schema://{aggregate_type}' },
    argument: { name: 'aggregate_type', value: 'art' },
  })
  assert.deepEqual(completion.completion.values, ['article'])
  await client.close()

  // A read-only key sees no writing tools and cannot call them.
  const reading = await connect(reader)
  const readable = await names(reading)
  for (const tool of WRITING) assert.ok(!readable.includes(tool), tool)
  for (const tool of READING) assert.ok(readable.includes(tool), tool)
  const refused = refusal(await reading.callTool({ name: 'create_article', arguments: { title: 'No' } }))
  assert.equal(refused.code, 'insufficient_scope')
  assert.deepEqual(refused.required, ['mcp:write'])
  assert.ok((await reading.callTool({ name: 'search', arguments: { query: title } })).structuredContent.results.length > 0)
  await reading.close()

  // An invalid key and a key for the API alone are rejected.
  await assert.rejects(connect('sk_' + '0'.repeat(64)))
  await assert.rejects(connect(stranger))
}
