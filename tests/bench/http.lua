-- Appends one event per request to streams that each thread has for itself; FOLDWORK_TOKEN is the bearer token.
local threads = 0

function setup(thread)
   thread:set("id", threads)
   threads = threads + 1
end

local number = 0
local streams = 6400
local body = string.rep("x", 250)

function init()
   wrk.method = "POST"
   wrk.headers["Authorization"] = "Bearer " .. os.getenv("FOLDWORK_TOKEN")
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   local verb = number < streams and "created" or "updated"
   local path = string.format("/api/v1/aggregates/http-%d-%d/events", id, number % streams)
   local event = string.format(
      '{"aggregate_type":"article","event_type":"article.%s","payload":{"title":"Title %d","body":"%s","n":%d}}',
      verb, number, body, number)
   number = number + 1
   return wrk.format(nil, path, nil, event)
end
