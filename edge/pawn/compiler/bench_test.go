package compiler_test

import (
	"fmt"
	"strings"
	"testing"

	"kennel/edge/pawn/compiler"
)

// bigScript is a script of about n lines as people write them: functions with loops, switches, arrays and calls.
func bigScript(n int) string {
	var b strings.Builder
	b.WriteString("#define LIMIT 20\n#define SQUARE(%1) ((%1) * (%1))\nenum point { px, py }\nnew table[16] = { 1, 2, ... }\n")
	lines := 4
	for i := 0; lines < n; i++ {
		fmt.Fprintf(&b, `
// step%[1]d works on a few values.
step%[1]d(a, &b, const list[], size = sizeof list)
{
	new sum, p[point]
	p[px] = a; p[py] = b
	for (new i = 0; i < size && i < LIMIT; i++)
	{
		if (list[i] > a)
			sum += list[i] * 2
		else
			sum -= SQUARE(a) %% 7
		switch (sum & 3)
		{
			case 0: b++
			case 1, 2: b += table[sum & 15]
			default: b = p[px] + p[py]
		}
	}
	return sum > 0 ? sum : -sum
}
`, i)
		lines += 21
	}
	b.WriteString("main()\n{\n\tnew x = 1\n")
	for i := range (n - 4) / 21 {
		fmt.Fprintf(&b, "\tx = step%d(x, x, table)\n", i)
	}
	b.WriteString("\tprintf \"%d\\n\", x\n}\n")
	return b.String()
}

// BenchmarkCompile prints lines a second.
func BenchmarkCompile(b *testing.B) {
	src := []byte(bigScript(20_000))
	for _, level := range []int{0, 2} {
		b.Run(fmt.Sprintf("O%d", level), func(b *testing.B) {
			o := options()
			o.Optimise = level
			o.StackHeap = 1 << 16
			lines := 0
			b.ReportAllocs()
			for b.Loop() {
				r := compiler.Compile("big.p", src, o)
				if r.Program == nil {
					b.Fatal(r.Messages[0])
				}
				lines += r.Lines
			}
			b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
