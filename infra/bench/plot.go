package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Series is one measure over time, one value a second.
type Series struct {
	Name   string
	Values []float64
}

// plotWidth is how many columns a plot has at most; longer series are drawn with the largest value of each group of seconds.
const plotWidth = 100

var bars = []rune(" ▁▂▃▄▅▆▇█")

// Plot draws series as rows of bars, each scaled to its own largest value, over one time axis.
func Plot(series ...Series) string {
	longest, name := 0, 0
	for _, s := range series {
		longest, name = max(longest, len(s.Values)), max(name, len(s.Name))
	}
	if longest == 0 {
		return ""
	}
	group := (longest + plotWidth - 1) / plotWidth
	var b strings.Builder
	for _, s := range series {
		cols := columns(s.Values, group)
		most := slices.Max(append(cols, 0))
		fmt.Fprintf(&b, "  %-*s ", name, s.Name)
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

// WriteCSV writes series as columns beside the second.
func WriteCSV(w io.Writer, series ...Series) error {
	c := csv.NewWriter(w)
	head, rows := []string{"second"}, 0
	for _, s := range series {
		head, rows = append(head, s.Name), max(rows, len(s.Values))
	}
	if err := c.Write(head); err != nil {
		return err
	}
	for i := range rows {
		row := []string{strconv.Itoa(i)}
		for _, s := range series {
			v := ""
			if i < len(s.Values) {
				v = strconv.FormatFloat(s.Values[i], 'f', -1, 64)
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
