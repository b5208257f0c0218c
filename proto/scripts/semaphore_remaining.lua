-- When can a permit be had at the latest? KEYS[1] how many are free; see semaphore_acquire.lua. Returns -2 if one is free, or it
-- was not set how many there are; or how long the next end is away in milliseconds (-1: none has an end).
local key = KEYS[1]
local free = tonumber(redis.call('GET', key))
if not free or free > 0 then
return -2
end
local taken = (string.find(key, '{', 1, true) and key or '{' .. key .. '}') .. ':timeout'
local first, time = redis.call('ZRANGE', taken, 0, 0, 'WITHSCORES')[2], redis.call('TIME')
local left = first and first - math.ceil(time[1] * 1000 + time[2] / 1000) or -1
return (left > 0 or not first) and left or -2
