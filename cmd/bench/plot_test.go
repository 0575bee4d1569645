package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// series is one measure over time, one value a second.
type series struct {
	name   string
	values []float64
}

// plotWidth is how many columns a plot has at most; longer series are drawn with the largest value of each group of seconds.
const plotWidth = 100

var bars = []rune(" ▁▂▃▄▅▆▇█")

// plot draws series as rows of bars, each scaled to its own largest value, over one time axis.
func plot(all ...series) string {
	longest, name := 0, 0
	for _, s := range all {
		longest, name = max(longest, len(s.values)), max(name, len(s.name))
	}
	if longest == 0 {
		return ""
	}
	group := (longest + plotWidth - 1) / plotWidth
	var b strings.Builder
	for _, s := range all {
		cols := columns(s.values, group)
		most := slices.Max(append(cols, 0))
		fmt.Fprintf(&b, "  %-*s ", name, s.name)
		for _, v := range cols {
			i := 0
			if v > 0 && most > 0 { // what is not nothing is seen
				i = max(1, int(v/most*float64(len(bars)-1)+0.5))
			}
			b.WriteRune(bars[i])
		}
		fmt.Fprintf(&b, " max %s\n", number(most))
	}
	fmt.Fprintf(&b, "  %-*s one column: %d s\n", name, "", group)
	return b.String()
}

// columns takes the largest of each group.
func columns(values []float64, group int) []float64 {
	var out []float64
	for c := range slices.Chunk(values, group) {
		out = append(out, slices.Max(c))
	}
	return out
}

// writeCSV writes series as columns beside the second.
func writeCSV(w io.Writer, all ...series) error {
	c := csv.NewWriter(w)
	head, rows := []string{"second"}, 0
	for _, s := range all {
		head, rows = append(head, s.name), max(rows, len(s.values))
	}
	if err := c.Write(head); err != nil {
		return err
	}
	for i := range rows {
		row := []string{strconv.Itoa(i)}
		for _, s := range all {
			v := ""
			if i < len(s.values) {
				v = strconv.FormatFloat(s.values[i], 'f', -1, 64)
			}
			row = append(row, v)
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func TestPlot(t *testing.T) {
	got := plot(series{"rate", []float64{0, 1, 100, 50}}, series{"memory", []float64{8, 8}})
	want := "  rate    ▁█▄ max 100\n  memory ██ max 8\n         one column: 1 s\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if long := plot(series{"x", make([]float64, 2*plotWidth+1)}); !strings.Contains(long, "one column: 3 s") {
		t.Errorf("a long series is drawn\n%s", long)
	}
	var csv strings.Builder
	if err := writeCSV(&csv, series{"a", []float64{1.5, 2}}, series{"b", []float64{3}}); err != nil || csv.String() != "second,a,b\n0,1.5,3\n1,2,\n" {
		t.Errorf("csv %q, %v", csv.String(), err)
	}
}
