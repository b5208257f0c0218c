-- What a protected resource does: writes only for a fence that is no smaller than the largest it has seen. The check and the
-- write are one script, so that nothing comes between them; use it as a pattern for other writes.
-- KEYS[1] resource, KEYS[2] its largest fence, ARGV[1] fence in decimal, ARGV[2] value. Returns 1, or 0 if the fence is too
-- small. Compared as strings of digits: Lua's numbers end at 2^53.
local seen = redis.call('GET', KEYS[2]) or ''
if #seen > #ARGV[1] or (#seen == #ARGV[1] and seen > ARGV[1]) then
return 0
end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return 1
