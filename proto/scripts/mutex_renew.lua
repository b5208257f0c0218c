-- Extends the lock if it is ours. Never shortens: a renewal that comes late must not cut what another promised.
-- KEYS[1] lock, ARGV[1] token, ARGV[2] lease in milliseconds. Returns 1 if the lease runs at least so long, 0 if it
-- is not ours.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
