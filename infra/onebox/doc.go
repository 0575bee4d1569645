// Package onebox holds the parts of one-machine mode and their life: a private Postgres, an S3 gateway and other children on one data
// folder, over the same wires as in production. What runs on top does not know the difference.
//
//	pg/data/   the Postgres cluster                 secrets/   passwords and keys, each in a file of mode 0600
//	s3/        the gateway's objects                run/       lock, ready.json and the pid records of children: nothing to keep
//	ca/        the certificate authority            log/       one file per part
//	robots/    a folder for each simulated robot
//
// Open takes the folder for this process, StopLeftovers ends what an earlier life left after kill -9, and each part is a service with
// Run and Ready. Close gives the folder back.
//
//	inst, err := onebox.Open(dir, log)
//	err = inst.StopLeftovers(ctx)
//	err = onebox.CheckListen("Postgres", addr, "-postgres-listen")
//	db, err := inst.Postgres(addr)            // services: db.Run, s3.Run, ...
//	err = onebox.Await(ctx, db, s3)           // then db.Config() opens a pool
//	err = inst.Publish(onebox.Ready{...}, readyFile)
//
// Backup and Restore carry a whole instance in one archive file.
package onebox
