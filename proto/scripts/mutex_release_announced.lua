-- Deletes the lock if it is ours, and wakes a waiter of every client.
-- KEYS[1] lock, ARGV[1] token, ARGV[2] channel. Returns 1 if it was deleted, 0 if it is not ours.
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
return 0
end
redis.call('DEL', KEYS[1])
redis.pcall(ARGV[3] or 'PUBLISH', ARGV[2], '0')
return 1
