package faults

import (
	"bytes"
	"compress/gzip"

	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
)

// captureTrace writes the trace of the time before a fault as a file below ReportsDir, if that is wanted and allowed, and returns its name; "": nothing was
// (VEC-DGN-08, VEC-FLT-09).
func (h *Handler) captureTrace(code faultcode.Code) (name string, err error) {
	if h.cfg.Handler.UploadTrace <= 0 || h.cfg.Trace == nil || !h.cfg.Allowed() {
		return "", nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := h.cfg.Trace(z); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if err := h.makeRoom(ReportsDir, int64(b.Len())); err != nil {
		return "", err
	}
	name = ReportsDir + "/fault-" + code.String() + "-" + h.cfg.Now().UTC().Format("2006-01-02-15-04-05") + ".trace.gz"
	return name, robotfs.WriteFile(h.cfg.Root, name, b.Bytes(), 0o600)
}
