-- Takes the write lock if the lock is free. A writer whose other side reads is told so: it would wait for itself.
-- KEYS[1] lock, ARGV[1] token, ARGV[2] lease in milliseconds, ARGV[3] the token of our read lock, or nothing. Returns OK,
-- UPGRADE, or the remaining time of the hold in the way in milliseconds (-1: it has no TTL).
local lock = KEYS[1]
if redis.call('EXISTS', lock) == 1 then
local reads = redis.pcall('HEXISTS', lock, ARGV[3])
if reads == 1 then
return redis.status_reply('UPGRADE')
elseif type(reads) == 'table' and not string.find(reads.err, 'WRONGTYPE', 1, true) then
return reads
end
return redis.call('PTTL', lock)
end
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
redis.call('PEXPIRE', lock, ARGV[2])
redis.call('HSET', lock, 'mode', 'write', ARGV[1] .. ':write', '1')
redis.call('PEXPIRE', lock, ARGV[2])
return redis.status_reply('OK')
