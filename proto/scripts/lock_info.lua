-- Who holds the lock? KEYS[1] lock, KEYS[2] counter of its fences. Returns type, remaining time in milliseconds (-1: no TTL,
-- -2: no key), owner (or the beginning of it), count, number of fields, mode of a read/write lock, fence. A writer's owner
-- comes without its `:write`.
local kind = redis.call('TYPE', KEYS[1]).ok
local owner, count, fields, mode = '', '0', 0, ''
if kind == 'string' then
owner, count, fields = redis.call('GETRANGE', KEYS[1], 0, 127), '1', 1
elseif kind == 'hash' then
fields = redis.call('HLEN', KEYS[1])
mode = string.sub(redis.call('HGET', KEYS[1], 'mode') or '', 1, 16)
local pairs_of_fields = fields <= 64 and redis.call('HGETALL', KEYS[1]) or {}
for index = 1, #pairs_of_fields, 2 do
local field, writes = pairs_of_fields[index], mode == 'write'
if writes and string.sub(field, -6) == ':write' or not writes and field ~= 'mode' then
owner = string.sub(writes and string.sub(field, 1, -7) or field, 1, 128)
count = string.sub(pairs_of_fields[index + 1], 1, 20)
break
end
end
end
local fence = redis.pcall('GET', KEYS[2])
if type(fence) ~= 'string' then
fence = ''
end
return {kind, redis.call('PTTL', KEYS[1]), owner, count, fields, mode, string.sub(fence, 1, 20)}
