-- Takes the lock if it is free. Re-entry is reentrant_step.lua: an owner field is never used for two holds.
-- KEYS[1] lock, ARGV[1] owner field, ARGV[2] lease in milliseconds. Returns OK, or the remaining time of the hold in the
-- way in milliseconds (-1: it has no TTL).
if redis.call('EXISTS', KEYS[1]) == 1 then
return redis.call('PTTL', KEYS[1])
end
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.status_reply('OK')
