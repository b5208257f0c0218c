-- Deletes our hold from every name where it still is, and wakes a waiter of every client of each of these names: Redisson's and
-- ours. A field that somebody else left stays. A name that fails does not keep the others. Needs no memory.
-- KEYS the names, ARGV[1] owner field, ARGV[2] what the channels' names begin with. Returns 1, or 0 if a name was not ours;
-- the server's own words where it refused.
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
local answer = 1
for _, key in ipairs(KEYS) do
local deleted = redis.pcall('HDEL', key, ARGV[1])
if deleted == 1 then
redis.pcall(ARGV[3] or 'PUBLISH', ARGV[2] .. (string.find(key, '{', 1, true) and ':' .. key or ':{' .. key .. '}'), '0')
elseif type(deleted) == 'table' and not string.find(deleted.err, 'WRONGTYPE', 1, true) then
answer = deleted
elseif type(answer) == 'number' then
answer = 0
end
end
return answer
