-- Deletes our hold and wakes a waiter of every client: Redisson's and ours. A field that somebody else left stays; whoever is
-- woken then finds the lock busy and sleeps again. Needs no memory.
-- KEYS[1] lock, ARGV[1] owner field, ARGV[2] channel. Returns 1, or 0 if it is not ours.
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
return 0
end
redis.pcall(ARGV[3] or 'PUBLISH', ARGV[2], '0')
return 1
