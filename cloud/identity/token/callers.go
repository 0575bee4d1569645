package token

import (
	"context"
)

// Steps of calls at other services of ours, for the doctor.
const (
	StepDocuments = "documents"
	StepAccounts  = "documents of an account"
)

// Caller returns who calls another service with an access token, as original robots do, beside their app key. step names the call. Only a
// refusal is recorded. Denied for a token that is not good, which makes an original robot refresh it; Unauthenticated without one, or
// without our app key.
func (s *Service) Caller(ctx context.Context, p Peer, step string) (Access, error) {
	err := s.appKey(p)
	if err == nil {
		var a Access
		if a, err = s.cfg.Verifier.Verify(ctx, p.AccessToken); err == nil {
			return a, nil
		}
	}
	if slow := s.pace(s.cfg.ByAddr, p.Addr); slow != nil {
		return Access{}, slow
	}
	claimed, _, _ := s.cfg.Verifier.parse(ctx, s.cfg.Verifier.bare, p.AccessToken) // whose it is, if we signed it
	return Access{}, s.record(ctx, p, step, claimed.Thing, "", err)
}

// ServiceCaller returns the name of the service of ours that calls, by its certificate and an app key.
func (s *Service) ServiceCaller(ctx context.Context, p Peer, step string) (name string, err error) {
	err = s.service(ctx, p, step, true, func(by string) error { name = by; return nil })
	return name, err
}
