-- Who is the server? Returns run id, uptime in seconds, version, Valkey's version or an empty string, the replication id,
-- which a master and its replicas share, and its standing: `-1master` of a master whose data are its own, an offset and
-- `master` of one that was promoted or that has loaded the data of a life before, `...slave` of a replica.
local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
local function get(name)
return string.match(info, '\n' .. name .. ':([^\r\n]*)') or ''
end
return {get('run_id'), get('uptime_in_seconds'), get('redis_version'), get('valkey_version'), get('master_replid'),
get('second_repl_offset') .. get('role')}
