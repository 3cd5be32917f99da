// A proxy that adds a key to every request and changes nothing else: `node proxy.mjs URL KEY`.

import http from 'node:http'

const [url, key] = process.argv.slice(2)
const to = new URL(url)

const proxy = http.createServer((asked, answer) => {
  // Replaces the host, so that the server receives the same host as without the proxy.
  const host = asked.headers.host === own ? to.host : asked.headers.host
  const headers = { ...asked.headers, host, authorization: `Bearer ${key}` }
  const options = { host: to.hostname, port: to.port, method: asked.method, path: asked.url, headers }
  const passed = http.request(options, (from) => {
    answer.writeHead(from.statusCode, from.headers)
    from.pipe(answer)
  })
  passed.on('error', () => answer.destroy())
  asked.pipe(passed)
})

let own
proxy.listen(0, '127.0.0.1', () => {
  own = `127.0.0.1:${proxy.address().port}`
  console.log(`http://${own}/mcp`)
})
