-- Takes the lock if it is free. Re-entry is reentrant_step.lua: an owner field is never used for two holds.
-- KEYS[1] lock, ARGV[1] owner field, ARGV[2] lease in milliseconds. Returns OK, or the remaining time of the hold in the
-- way in milliseconds (-1: it has no TTL).
local call, lock = redis.call, KEYS[1]
local left = call('PTTL', lock)
if left ~= -2 then
return left
end
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
call('PEXPIRE', lock, ARGV[2])
call('HSET', lock, ARGV[1], '1')
call('PEXPIRE', lock, ARGV[2])
return {ok = 'OK'}
