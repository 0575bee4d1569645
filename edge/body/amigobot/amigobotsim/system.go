package amigobotsim

import (
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/sysmode"
)

// serve is one cycle of System mode: the tools' requests come in at the System port, and clients are not heard (AMIGO-DL-07).
func (r *Robot) serve(in, out Lines) Lines {
	r.world.Step(cycle, 0, 0)
	for rest := in[System]; ; {
		n := copy(r.system.Space(), rest)
		rest = rest[n:]
		r.system.Fill(n)
		r.system.Expire(r.now)
		for payload, ok := r.system.Next(); ok && r.mode == SystemMode; payload, ok = r.system.Next() {
			reply, event := r.cfg.Memory.Handle(payload)
			if reply == nil {
				continue
			}
			out[System], _ = sip.AppendFrame(out[System], reply) // Handle keeps to the size
			switch event {
			case sysmode.Left: // AMIGO-CF-10
				r.boot()
			case sysmode.Saved, sysmode.Verified:
				if r.cfg.OnStore != nil {
					r.cfg.OnStore()
				}
			}
		}
		if len(rest) == 0 {
			break
		}
	}
	r.pass(busyAmps)
	return out
}
