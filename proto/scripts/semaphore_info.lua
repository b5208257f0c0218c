-- Who has permits? KEYS[1] how many are free; see semaphore_acquire.lua. Returns how many there are, or 0 where the key is no
-- number or nobody has one, which a string that is no semaphore looks like; how many are taken and have not ended; the token (or
-- the beginning of it) of the one that ends next, and how long that is away in milliseconds.
local key = KEYS[1]
local taken = (string.find(key, '{', 1, true) and key or '{' .. key .. '}') .. ':timeout'
local free, held = redis.call('GET', key), redis.call('ZCARD', taken)
if held == 0 or not string.find(free or '', '^%-?%d+$') then
return {0, 0, '', 0}
end
local time = redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
local first = redis.call('ZRANGEBYSCORE', taken, '(' .. string.format('%d', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local live = redis.call('ZCOUNT', taken, '(' .. string.format('%d', now), '+inf')
return {math.max(free + held, 1), live, string.sub(first[1] or '', 1, 128), first[2] and first[2] - now or 0}
