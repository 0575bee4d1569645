//go:build js && wasm

// Command playground compiles and runs Pawn scripts in a browser: it is built for WebAssembly and gives the page of cloud/web/playground the functions
// pawnCompile(text) and pawnRun(budget, step, lines), whose answers are JSON.
package main

import (
	"encoding/json"
	"strings"
	"syscall/js"

	"kennel/edge/pawn/compiler"
	"kennel/edge/pawn/host"
)

// compiled is the answer of pawnCompile.
type compiled struct {
	Ready    bool               `json:"ready"`
	Messages []compiler.Message `json:"messages"`
	Why      string             `json:"why,omitempty"`
}

func main() {
	var session *host.Session
	answer := func(v any) any {
		b, err := json.Marshal(v)
		if err != nil {
			return `{"why":"` + strings.ReplaceAll(err.Error(), `"`, "'") + `"}`
		}
		return string(b)
	}
	js.Global().Set("pawnCompile", js.FuncOf(func(_ js.Value, args []js.Value) any {
		s, messages, err := host.New([]byte(args[0].String()))
		session = s
		out := compiled{Ready: s != nil, Messages: messages}
		if err != nil {
			out.Why = err.Error()
		}
		return answer(out)
	}))
	js.Global().Set("pawnRun", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if session == nil {
			return answer(host.Report{State: host.Ended, Why: "no script was compiled"})
		}
		var lines []int
		for i := range args[2].Length() {
			lines = append(lines, args[2].Index(i).Int())
		}
		session.Break(lines...)
		return answer(session.Run(int64(args[0].Int()), args[1].Bool()))
	}))
	js.Global().Call("pawnReady")
	select {}
}
