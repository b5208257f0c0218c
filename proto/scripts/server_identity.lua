-- Who is the server? Returns run id, uptime in seconds, version, and Valkey's version or an empty string.
local info = redis.call('INFO', 'server')
local function field(name)
return string.match(info, '\n' .. name .. ':([^\r\n]*)') or ''
end
return {field('run_id'), field('uptime_in_seconds'), field('redis_version'), field('valkey_version')}
