package mosquitto

import (
	"encoding/json"
	"slices"

	"kennel/infra/errs"
)

// CheckSecurity reports why a broker that starts with this security file would not take the services' orders: it cannot be read, or a
// service is missing, disabled or without a right that this version needs. Its kind is Corrupt: replace the file with Security, and
// the services provision the things again.
func (b Broker) CheckSecurity(file []byte) error {
	var s securityFile
	if err := json.Unmarshal(file, &s); err != nil {
		return errs.New(errs.Corrupt, "mosquitto: security file: %w", err)
	}
	i := slices.IndexFunc(s.Roles, func(r role) bool { return r.Name == adminRole })
	if i < 0 {
		return errs.New(errs.Corrupt, "mosquitto: security file: no role %s", adminRole)
	}
	for _, want := range adminACLs() {
		if !slices.Contains(s.Roles[i].ACLs, want) {
			return errs.New(errs.Corrupt, "mosquitto: security file: role %s may not %s %s", adminRole, want.Type, want.Topic)
		}
	}
	for _, name := range b.admins() {
		if !slices.ContainsFunc(s.Clients, func(c client) bool {
			return c.Username == name && !c.Disabled && slices.Contains(c.Roles, roleRef{adminRole})
		}) {
			return errs.New(errs.Corrupt, "mosquitto: security file: service %s is missing, disabled or without the role %s", name, adminRole)
		}
	}
	for what, allowed := range s.Defaults {
		if want := defaultAccess()[what]; allowed && !want {
			return errs.New(errs.Corrupt, "mosquitto: security file: %s is allowed to all clients", what)
		}
	}
	return nil
}

// defaultAccess lists the rights of a client without a rule of its own. A client that may not subscribe receives nothing; a rule for each delivery
// would only cost. ($CONTROL is not covered by this default.)
func defaultAccess() map[string]bool {
	return map[string]bool{sendACL: false, receiveACL: true, "subscribe": false, "unsubscribe": true}
}
