package robotapp

import (
	"context"
	"os"

	"kennel/edge/body/vector"
	"kennel/edge/body/vector/factory/emr"
	"kennel/infra/logging"
)

// openFactory makes the head's end of the factory's command line (VEC-CLI-03). On every robot at home it is off (VEC-CLI-01, VEC-STOR-05): that is no
// error, one that was asked for and is refused neither.
func (v *vectorBody) openFactory(ctx context.Context) error {
	if !v.cfg.Factory {
		return nil
	}
	root, err := os.OpenRoot(v.cfg.Root)
	var rec emr.Record
	if err == nil {
		defer root.Close() // read only
		rec, err = emr.Read(root)
	}
	if err != nil || !emr.FactoryMode(rec, v.cfg.Factory) {
		v.log.WarnContext(ctx, "factory command line disabled; robot has left the factory", logging.Err, err)
		return err
	}
	v.log.WarnContext(ctx, "factory command line open on the charging pad")
	v.cli = &vector.Factory{Commands: map[string]vector.FactoryCommand{
		"esn": func([]string) (string, error) { return rec.Serial(), nil },
	}}
	return nil
}
