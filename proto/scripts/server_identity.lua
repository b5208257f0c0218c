-- Who is the server? Returns run id, uptime in seconds, version, Valkey's version or an empty string, and the replication
-- id, which a master and its replicas share.
local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
local function field(name)
return string.match(info, '\n' .. name .. ':([^\r\n]*)') or ''
end
return {field('run_id'), field('uptime_in_seconds'), field('redis_version'), field('valkey_version'),
field('master_replid')}
