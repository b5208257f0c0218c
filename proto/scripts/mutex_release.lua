-- Deletes the lock if it is ours.
-- KEYS[1] lock, ARGV[1] token. Returns 1 if it was deleted, 0 if it is not ours.
if redis.call('GET', KEYS[1]) == ARGV[1] then
return redis.call('DEL', KEYS[1])
end
return 0
