-- Appends one event per request to streams that each thread has for itself; FOLDWORK_TOKEN is the bearer token.
-- FOLDWORK_STREAMS begins the names of the streams, so that several runs on one server have streams of their own.
local threads = 0

function setup(thread)
   thread:set("id", threads)
   threads = threads + 1
end

local number = 0
local streams = 6400
local prefix = os.getenv("FOLDWORK_STREAMS") or "http"
local body = string.rep("x", 250)

function init()
   wrk.method = "POST"
   wrk.headers["Authorization"] = "Bearer " .. os.getenv("FOLDWORK_TOKEN")
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   -- wrk calls this function of the first thread once before the first request, and drops that request. The first
   -- thread therefore creates one stream late, and the other threads create one stream twice.
   local verb = number <= streams and "created" or "updated"
   local path = string.format("/api/v1/aggregates/%s-%d-%d/events", prefix, id, number % streams)
   local event = string.format(
      '{"aggregate_type":"article","event_type":"article.%s","expected_version":"any",'
         .. '"payload":{"title":"Title %d","body":"%s","n":%d}}',
      verb, number, body, number)
   number = number + 1
   return wrk.format(nil, path, nil, event)
end
