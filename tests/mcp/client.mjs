// Runs the client of the npm package @modelcontextprotocol/client: `node client.mjs legacy|auto`.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import assert from 'node:assert/strict'
import { story, url } from './story.mjs'

const mode = process.argv[2]

await story(`client-${mode}`, async (key) => {
  const client = new Client({ name: 'client', version: '1' }, { versionNegotiation: { mode } })
  const headers = { authorization: `Bearer ${key}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  const version = client.getNegotiatedProtocolVersion()
  assert.equal(version >= '2026', mode === 'auto', version)
  return client
})
