package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"

	"kennel/infra/api/poke"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
)

// Hand touches a simulated body as a person beside it would; simulator.Client is one. Safe for concurrent use.
type Hand interface {
	Present() bool // the robot is simulated
	Poke(ctx context.Context, p poke.Poke) error
}

const (
	handCall     = "hand"
	maxHandWords = 64 // bytes
)

// handRoutes are for the robot's own page: GET says whether the robot is simulated, POST does what its body says, in the words of "robotsim poke".
func (g *Gateway) handRoutes() map[string]http.Handler {
	answer := func(right string, f func(r *http.Request, c caller) (any, error)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := g.admit(r.Context(), call{name: handCall, right: right, counted: true}, r.Header.Get("Authorization"))
			var out any
			if err == nil {
				out, err = f(r, c)
			}
			if err != nil {
				writeError(w, err)
				return
			}
			kithttp.WriteJSON(w, http.StatusOK, out)
		})
	}
	return map[string]http.Handler{
		"GET /hand": answer(Look, func(*http.Request, caller) (any, error) {
			return map[string]bool{"simulated": g.simulated()}, nil
		}),
		"POST /hand": answer(Move, func(r *http.Request, c caller) (any, error) {
			words, err := io.ReadAll(io.LimitReader(r.Body, maxHandWords+1))
			if err != nil || len(words) > maxHandWords {
				return nil, invalid("want a verb and a place, such as pat chin, in at most %d bytes", maxHandWords)
			}
			p, err := poke.Poke{}.Named(strings.Fields(string(words))...)
			if err == nil && p.File != "" {
				err = p.Refused() // no files come this way
			}
			if err != nil {
				return nil, invalid("%s", err)
			}
			if !g.simulated() {
				return nil, errs.Coded(errs.Conflict, "not_simulated", "this robot is real: touch it by hand")
			}
			if err = g.cfg.Hand.Poke(r.Context(), p); err != nil {
				err = errs.Coded(errs.Conflict, "not_possible", "%s", err)
			}
			g.used.note(c.Name, handCall, p.String(), OutcomeOf(err))
			return struct{}{}, err
		}),
	}
}

func (g *Gateway) simulated() bool { return g.cfg.Hand != nil && g.cfg.Hand.Present() }
