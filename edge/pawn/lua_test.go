package pawn

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// luaSource has the functions of testdata/bench/bench.p in Lua.
const luaSource = `
function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end

function sieve(rounds)
  local size, flags, count = 8191, {}, 0
  for _ = 1, rounds do
    count = 0
    for i = 0, size - 1 do flags[i] = 1 end
    for i = 0, size - 1 do
      if flags[i] ~= 0 then
        local prime = i + i + 3
        for k = i + prime, size - 1, prime do flags[k] = 0 end
        count = count + 1
      end
    end
  end
  return count
end

function matmul(rounds)
  local n, left, right, product, trace = 32, {}, {}, {}, 0
  for i = 0, n - 1 do
    left[i], right[i], product[i] = {}, {}, {}
    for j = 0, n - 1 do left[i][j], right[i][j] = i + j, i - j end
  end
  for _ = 1, rounds do
    for i = 0, n - 1 do
      for j = 0, n - 1 do
        local s = 0
        for k = 0, n - 1 do s = s + left[i][k] * right[k][j] end
        product[i][j] = s
      end
    end
    for i = 0, n - 1 do trace = trace + product[i][0] end
  end
  return trace
end

function collatz(limit)
  local best = 0
  for start = 1, limit - 1 do
    local n, steps = start, 0
    while n ~= 1 do
      if n % 2 ~= 0 then n = 3 * n + 1 else n = n / 2 end
      steps = steps + 1
    end
    if steps > best then best = steps end
  end
  return best
end
`

// inLua returns a function that calls one of luaSource.
func inLua(t testing.TB) func(name string, arg int32) int32 {
	t.Helper()
	l := lua.NewState()
	t.Cleanup(l.Close)
	if err := l.DoString(luaSource); err != nil {
		t.Fatal(err)
	}
	return func(name string, arg int32) int32 {
		if err := l.CallByParam(lua.P{Fn: l.GetGlobal(name), NRet: 1, Protect: true}, lua.LNumber(arg)); err != nil {
			t.Fatal(err)
		}
		defer l.Pop(1)
		return int32(l.ToNumber(-1))
	}
}

// TestLua: the functions in Lua, against which the machine is measured, compute the same.
func TestLua(t *testing.T) {
	run := inLua(t)
	for _, b := range benchmarks {
		arg := b.arg / 10
		if got, want := run(b.name[1:], arg), b.native(arg); got != want {
			t.Errorf("%s(%d) = %d, want %d", b.name[1:], arg, got, want)
		}
	}
}

// BenchmarkLua measures gopher-lua, another machine in Go, beside BenchmarkMachine and BenchmarkGo (issue 36, must hold 5).
func BenchmarkLua(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(c.name[1:], func(b *testing.B) {
			run := inLua(b)
			for b.Loop() {
				sink = run(c.name[1:], c.arg)
			}
		})
	}
}
