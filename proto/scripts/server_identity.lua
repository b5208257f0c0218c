-- Who is the server? Returns run id, uptime in seconds, version, Valkey's version or an empty string, the replication id,
-- which a master and its replicas share, and its standing: `-1`, its mode and `master` of a master whose data are its own, an
-- offset, its mode and `master` of one that was promoted or that has loaded the data of a life before, `...slave` of a replica. The
-- mode is `standalone` or `cluster`. With a key, only who serves that key's slot answers.
local info = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
local function of(key)
return info:match('\n' .. key .. ':(%C*)') or ''
end
return {of('run_id'), of('uptime_in_seconds'), of('redis_version'), of('valkey_version'), of('master_replid'),
of('second_repl_offset') .. of('%a+_mode') .. of('role')}
