// Runs the client of the npm package @modelcontextprotocol/sdk.

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { story, url } from './story.mjs'

await story('sdk', async (key) => {
  const client = new Client({ name: 'sdk', version: '1' })
  const headers = { authorization: `Bearer ${key}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  return client
})
