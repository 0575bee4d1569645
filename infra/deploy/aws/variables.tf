variable "name" {
  description = "Name of the installation; part of the names of its resources."
  type        = string
  default     = "kennel"
}

variable "bucket" {
  description = "Name of the bucket; unique in the world."
  type        = string
}

variable "vpc_id" {
  description = "The network that kenneld runs in."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of that network, in at least two zones, for the database."
  type        = list(string)
}

variable "kenneld_security_group_id" {
  description = "Security group of kenneld: nothing else reaches the database."
  type        = string
}

variable "kenneld_role_name" {
  description = "Role that kenneld's processes have (an instance profile, or a service account of EKS)."
  type        = string
}

variable "database_class" {
  description = "Class of the database's servers; see kenneld plan."
  type        = string
  default     = "db.r6g.xlarge"
}
