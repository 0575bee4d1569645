package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"kennel/infra/errs"
)

const outputFlag = "output"

// Usage returns an error that ends the program with ExitUsage.
func Usage(format string, args ...any) error { return errs.New(errs.Invalid, format, args...) }

// AddOutput gives root and all its commands the flag -o, -output: table or json.
func AddOutput(root *cobra.Command) {
	root.PersistentFlags().VarP(&format{"table"}, outputFlag, "o", "print results as `table or json`")
	_ = root.RegisterFlagCompletionFunc(outputFlag, cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// AddOutputFile makes -o of a command that writes a file name that file too: any other word than table and json is a FILE, which it puts into file.
func AddOutputFile(cmd *cobra.Command, file *string, what string) {
	cmd.Flags().VarP(&formatOrFile{format{"table"}, file}, outputFlag, "o", what+" `FILE`; or print the result as table or json")
}

// formatOrFile is the value of -o of a command that writes a file.
type formatOrFile struct {
	format
	file *string
}

func (f *formatOrFile) Type() string { return "file" }
func (f *formatOrFile) Set(s string) error {
	switch s {
	case "table", "json":
		return f.format.Set(s)
	case "":
		return fmt.Errorf("want the name of a file, table or json")
	}
	*f.file = s
	return nil
}

// format is the value of -o.
type format struct{ v string }

func (f *format) String() string { return f.v }
func (f *format) Type() string   { return "format" }
func (f *format) Set(s string) error {
	if s != "table" && s != "json" {
		return fmt.Errorf("want table or json")
	}
	f.v = s
	return nil
}

// JSON reports whether the command was asked for JSON.
func JSON(cmd *cobra.Command) bool {
	f := cmd.Flag(outputFlag)
	return f != nil && f.Value.String() == "json"
}

// wantsJSON answers for a command line that may not have been parsed to its end.
func wantsJSON(root *cobra.Command, args []string) bool {
	f := root.PersistentFlags().Lookup(outputFlag)
	if f == nil {
		return false
	}
	if f.Changed {
		return f.Value.String() == "json"
	}
	for i, a := range args {
		a = strings.TrimLeft(a, "-")
		if a == "o=json" || a == "output=json" || a == "ojson" ||
			(i > 0 && a == "json" && (args[i-1] == "-o" || strings.TrimLeft(args[i-1], "-") == outputFlag)) {
			return true
		}
	}
	return false
}

// Print writes v as indented JSON with -o json, else what table draws. Both come from the same value, so that neither knows more.
func Print(cmd *cobra.Command, v any, table func(*Table)) error {
	out := cmd.OutOrStdout()
	if JSON(cmd) {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	t := NewTable(out)
	table(t)
	return t.Flush()
}

// PrintLine writes one value of a stream: one line of JSON, or what line returns.
func PrintLine(cmd *cobra.Command, v any, line func() string) error {
	out := cmd.OutOrStdout()
	if JSON(cmd) {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	_, err := fmt.Fprintln(out, Clean(line()))
	return err
}

// Table draws columns for people, aligned from its first line to its last.
type Table struct {
	w    io.Writer
	rows [][]string
}

// NewTable returns a table that writes to w at Flush.
func NewTable(w io.Writer) *Table { return &Table{w: w} }

// Row adds one line; each cell prints as %v, cleaned of control characters, and an empty one as "-".
func (t *Table) Row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = cmp.Or(Clean(fmt.Sprint(c)), "-")
	}
	t.rows = append(t.rows, row)
}

// Section adds an empty line and a heading.
func (t *Table) Section(title string) { t.Text(""); t.Text(title) }

// Text adds a line outside the columns.
func (t *Table) Text(s string) { t.rows = append(t.rows, []string{Clean(s)}) }

// Flush writes what is drawn. The last cell of a line does not widen its column.
func (t *Table) Flush() error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		last := len(row) - 1
		for i, cell := range row[:last] {
			b.WriteString(cell + strings.Repeat(" ", widths[i]+2-utf8.RuneCountInString(cell)))
		}
		b.WriteString(row[last] + "\n")
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// Count is a number of things, each of which is one: "1 robot", "2 robots".
func Count[N ~int | ~int64 | ~uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", one, "s")
}

// Clean replaces control characters, which a robot may have put into its words to confuse a terminal, by visible marks.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || r == '\u202e' || r == '\u2066' || r == '\u2067' || r == '\u2068':
			return '\ufffd'
		}
		return r
	}, s)
}
