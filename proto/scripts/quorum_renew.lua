-- Extends a lock of a quorum that is ours, and writes the quorum's fence into this node's counter, which it never makes
-- smaller: only a node that still holds this grant's token counts for the fence. Never shortens.
-- KEYS[1] lock, KEYS[2] counter, ARGV[1] token, ARGV[2] lease in milliseconds, ARGV[3] fence in decimal. Returns 1 if the
-- lease runs at least so long and the counter is no smaller, 0 if the lock is not ours.
local ours
if redis.call('TYPE', KEYS[1]).ok == 'hash' then
ours = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
else
ours = redis.call('GET', KEYS[1]) == ARGV[1]
end
if not ours then
return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local counter = redis.call('GET', KEYS[2]) or ''
if string.sub(counter, 1, 1) == '-' or #counter < #ARGV[3] or (#counter == #ARGV[3] and counter < ARGV[3]) then
redis.call('SET', KEYS[2], ARGV[3])
end
return 1
