package lifeos

import (
	"strconv"
	"strings"

	"kennel/edge/body/pleo/format"
	"kennel/edge/pawn"
)

// resourceNatives are those of resources (PLEO-XAPI-10).
func resourceNatives() []Native {
	return []Native{
		{"Resource", "resource_get_id(const name[])", func(e *env) int32 { // PLEO-APP-07
			name := e.text(0)
			for kind := format.Sounds; kind <= format.Properties; kind++ {
				if id := e.s.idOf(kind, name); id != 0 {
					return id
				}
			}
			return 0
		}},
		{"Resource", "bool: resource_get_name(id, name[], bool: packed = false, length = sizeof name)", func(e *env) int32 {
			r, ok := e.s.byID(e.Arg(0), e.m.from)
			e.give(1, r.name, e.flag(2), e.Arg(3))
			return truth(ok)
		}},
		{"Resource", "bool: resource_verify()", func(e *env) int32 { return truth(e.s.drives[1].bundle != nil) }},
	}
}

// withFile makes a native of a function of the open file that its first argument names; without one it returns 0.
func withFile(f func(e *env, o *openFile) int32) func(*env) int32 {
	return func(e *env) int32 {
		o := e.s.files.open[e.Arg(0)]
		if o == nil {
			return 0
		}
		return f(e, o)
	}
}

func fileNatives() []Native {
	return []Native{
		{"File", "device_change(device)", func(e *env) int32 {
			if d := e.Arg(0); d >= 0 && int(d) < len(e.s.drives) {
				e.s.device = int(d)
				return 1
			}
			return 0
		}},
		{"File", "File: file_open(const name[], mode = io_read)", func(e *env) int32 { return e.s.openFile(e.text(0), e.Arg(1)) }}, // PLEO-XAPI-11
		{"File", "file_gets(File: file, line[], bool: packed = false, size = sizeof line)", withFile(func(e *env, o *openFile) int32 {
			return e.give(1, string(o.line(capacity(e.Arg(3), e.flag(2)))), e.flag(2), e.Arg(3))
		})},
		{"File", "file_puts(File: file, const line[])", withFile(func(e *env, o *openFile) int32 { return o.put([]byte(e.text(1))) })},
		{"File", "file_read(File: file, line[], bool: packed = true, size = sizeof line)", withFile(func(e *env, o *openFile) int32 {
			rest := o.data[o.at:]
			rest = rest[:min(len(rest), capacity(e.Arg(3), e.flag(2)))]
			o.at += len(rest)
			return e.give(1, string(rest), e.flag(2), e.Arg(3))
		})},
		{"File", "file_write(File: file, const line[], size = sizeof line)", withFile(func(e *env, o *openFile) int32 { return o.put(e.bytes(1, e.Arg(2))) })},
		{"File", "file_printf(File: file, const format[], {Float,Fixed,_}: ...)", withFile(func(e *env, o *openFile) int32 { return o.put([]byte(e.format(1))) })},
		{"File", "file_seek(File: file, offset, origin = seek_set)", withFile(func(e *env, o *openFile) int32 { return o.seek(e.Arg(1), e.Arg(2)) })},
		{"File", "bool: file_close(File: file, bool: flush = true)", withFile(func(e *env, o *openFile) int32 {
			delete(e.s.files.open, e.Arg(0))
			return truth(!e.flag(1) || e.s.flush(o))
		})},
		{"File", "bool: file_flush(File: file)", withFile(func(e *env, o *openFile) int32 { return truth(e.s.flush(o)) })},
		{"File", "file_get_size(File: file)", withFile(func(_ *env, o *openFile) int32 { return int32(len(o.data)) })},
		{"File", "Find: find_first(const pattern[], name[], bool: packed = true, length = sizeof name)", func(e *env) int32 {
			e.s.files.find = e.s.findFiles(e.text(0))
			return e.nextName(1)
		}},
		{"File", "bool: find_next(Find: find, name[], bool: packed = true, length = sizeof name)", func(e *env) int32 { return e.nextName(1) }},
		{"File", "bool: file_exists(const name[])", func(e *env) int32 {
			_, err := e.s.readFile(e.text(0), maxBundle)
			return truth(err == nil)
		}},
		{"File", "bool: file_copy(const from[], const to[])", func(e *env) int32 { return truth(e.s.copyFile(e.text(0), e.text(1))) }},
		{"File", "bool: file_delete(const name[])", func(e *env) int32 { return truth(e.s.deleteFile(e.text(0))) }},
	}
}

// capacity returns how many characters fit into an array with a zero behind them.
func capacity(cells int32, packed bool) int {
	if packed {
		cells *= 4
	}
	return max(int(cells)-1, 0)
}

// nextName gives the next name of a search to argument i.
func (e *env) nextName(i int) int32 {
	if len(e.s.files.find) == 0 {
		return 0
	}
	e.give(i, e.s.files.find[0], e.flag(i+1), e.Arg(i+2))
	e.s.files.find = e.s.files.find[1:]
	return 1
}

// packed reports whether a string of a script is packed.
func (e *env) packed(i int) bool {
	first, _ := e.M.Cell(e.Arg(i))
	return uint32(first) > 0xFFFFFF
}

func stringNatives() []Native {
	return []Native{
		{"String", "string_length(const string[])", func(e *env) int32 { return int32(len(e.text(0))) }}, // PLEO-XAPI-12
		{"String", "bool: string_is_packed(const string[])", func(e *env) int32 { return truth(e.packed(0)) }},
		{"String", "string_compare(const s1[], const s2[], bool: ignorecase = false, length = cellmax)", func(e *env) int32 {
			a, b := e.text(0), e.text(1)
			if e.flag(2) {
				a, b = strings.ToLower(a), strings.ToLower(b)
			}
			n := int(max(e.Arg(3), 0))
			return int32(strings.Compare(a[:min(len(a), n)], b[:min(len(b), n)]))
		}},
		{"String", "string_concat(dest[], const source[], length = sizeof dest)", func(e *env) int32 {
			return e.give(0, e.text(0)+e.text(1), e.packed(0), e.Arg(2))
		}},
		{"String", "string_copy(dest[], const source[], length = sizeof dest)", func(e *env) int32 { return e.give(0, e.text(1), e.packed(1), e.Arg(2)) }},
		{"String", "string_printf(dest[], size, bool: pack, const format[], {Float,Fixed,_}: ...)", func(e *env) int32 {
			text := e.format(3)
			if e.code != pawn.OK {
				return 0
			}
			return e.give(0, text, e.flag(2), e.Arg(1))
		}},
		{"String", "itoa(number, base, buffer[], size = sizeof buffer)", func(e *env) int32 {
			base := min(max(int(e.Arg(1)), 2), 36)
			return e.give(2, strconv.FormatInt(int64(e.Arg(0)), base), false, e.Arg(3))
		}},
		{"String", "atoi(const string[])", func(e *env) int32 {
			text := strings.TrimSpace(e.text(0))
			end := 0
			for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '-' || text[0] == '+')) {
				end++
			}
			v, _ := strconv.ParseInt(text[:end], 10, 32) // no digits: 0; too many: the nearest
			return int32(v)
		}},
	}
}

// random returns a number from 0 to below of, at least 0.
func random(e *env) int32 {
	if e.Arg(0) <= 0 {
		return 0
	}
	return e.s.rand.Int32N(e.Arg(0))
}

func timeNatives() []Native {
	return []Native{
		{"Time", "time()", func(e *env) int32 { return e.s.ms() }}, // PLEO-XAPI-13
		{"Util", "rand(x)", random},
		{"Util", "random(x)", random},
		{"Util", "seed(x)", func(e *env) int32 { e.s.seed(e.Arg(0)); return 0 }},
		{"Util", "abs(i)", func(e *env) int32 { return max(e.Arg(0), -e.Arg(0)) }},
		{"Util", "monitor_exec(const command[])", func(e *env) int32 { // PLEO-MON-06
			e.s.print(e.s.Monitor(e.text(0)))
			return 0
		}},
	}
}
