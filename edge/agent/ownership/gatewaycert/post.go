package gatewaycert

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/tokenwire"
	"kennel/infra/kit/kitmqtt"
)

// postTime bounds one request.
const postTime = 30 * time.Second

// Post gives the certificate to the cloud, for clients to fetch, unless it has it (VEC-AUTH-03, VEC-TOK-04). Call it whenever there is a
// connection; an error means to call it again.
func (p *Plate) Post(ctx context.Context, ask kitmqtt.Requester) error {
	if p.Posted() {
		return nil
	}
	body, err := json.Marshal(tokenwire.Certificate{SessionCertificate: string(p.pem)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	if _, err := ask.Do(ctx, tokenwire.Service, tokenwire.CertificateMethod, body); err != nil {
		return fmt.Errorf("send gateway certificate to the cloud: %w", err)
	}
	return p.NotePosted()
}

// Posted reports whether the cloud has this certificate.
func (p *Plate) Posted() bool {
	b, err := robotfs.ReadFile(p.cfg.Root, postedFile)
	return err == nil && strings.TrimSpace(string(b)) == digest(p.cert.Leaf)
}

// NotePosted notes that the cloud has it: an association carries it too.
func (p *Plate) NotePosted() error {
	return robotfs.WriteFile(p.cfg.Root, postedFile, []byte(digest(p.cert.Leaf)+"\n"), 0o644)
}
