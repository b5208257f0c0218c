-- Deletes our hold and wakes a waiter of every client: Redisson's and ours. Needs no memory.
-- KEYS[1] lock, ARGV[1] owner field, ARGV[2] channel. Returns 1, or 0 if it is not ours.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
return 0
end
if redis.call('EXISTS', KEYS[1]) == 0 then
redis.pcall('PUBLISH', ARGV[2], '0')
end
return 1
