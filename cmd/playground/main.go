//go:build js && wasm

// Command playground compiles and runs Pawn scripts in a browser: it is built for WebAssembly and gives the page of cloud/web/playground the functions
// pawnCompile(text) and pawnRun(budget, step, lines, watches), and for a script on a simulated Pleo pleoCompile(text), pleoRun(ms, step, lines, watches) and
// pleoTouch(pad). Their answers are JSON.
package main

import (
	"context"
	"encoding/json"
	"strings"
	"syscall/js"
	"time"

	"kennel/edge/body/pleo/pleodebug"
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
		lines, watches := points(args)
		session.Break(lines...)
		session.Watch(watches...)
		return answer(session.Run(int64(args[0].Int()), args[1].Bool()))
	}))
	pleo(answer)
	js.Global().Call("pawnReady")
	select {}
}

// points are the lines and the variables of a call that lets a script run.
func points(args []js.Value) (lines []int, watches []string) {
	for i := range args[2].Length() {
		lines = append(lines, args[2].Index(i).Int())
	}
	for i := range args[3].Length() {
		watches = append(watches, args[3].Index(i).String())
	}
	return lines, watches
}

// pleo adds the functions of a script on a Pleo.
func pleo(answer func(any) any) {
	var page *pleodebug.Page
	js.Global().Set("pleoCompile", js.FuncOf(func(_ js.Value, args []js.Value) any {
		p, messages, err := pleodebug.NewPage([]byte(args[0].String()))
		page = p
		out := compiled{Ready: p != nil, Messages: messages}
		if err != nil {
			out.Why = err.Error()
		}
		return answer(out)
	}))
	js.Global().Set("pleoRun", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if page == nil {
			return answer(pleodebug.Report{State: "off", Why: "no script was compiled"})
		}
		page.Keep(points(args))
		pace := pleodebug.Free
		if args[1].Bool() {
			pace = pleodebug.Step
		}
		return answer(page.Run(context.Background(), pace, time.Duration(args[0].Int())*time.Millisecond))
	}))
	js.Global().Set("pleoTouch", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if page == nil {
			return ""
		}
		if err := page.Touch(args[0].String(), pleodebug.TouchFor); err != nil {
			return err.Error()
		}
		return ""
	}))
}
