package sparkdstl.bench.recovery

import java.io.File

import sparkdstl.bench.{Contender, RequestDelays, SpecFile, Workload}

/**
 * What one process of the recovery benchmark does.
 *
 * @param phase         `prepare` or `recover`
 * @param root          a directory of its own, for the checkpoints
 * @param delays        of the storage while it recovers
 * @param stores        of all partitions
 * @param batchesBefore that were run when the newest snapshots were taken
 * @param batchesSince  that were run after that
 * @param confs         further SQL configurations
 */
final case class RecoverySpec(
    phase: String,
    workload: Workload,
    partitions: Int,
    contender: Contender,
    root: String,
    output: String,
    delays: Option[RequestDelays],
    stores: Int,
    batchesBefore: Int,
    batchesSince: Int,
    confs: Map[String, String]
)

object RecoverySpec {
  val Prepare = "prepare"
  val Recover = "recover"

  /** @throws IllegalArgumentException naming the field that is missing or wrong */
  def read(file: File): RecoverySpec = {
    val spec = new SpecFile(file)
    val phase = spec.field("phase").asText
    if (phase != Prepare && phase != Recover)
      throw new IllegalArgumentException(s"no phase is named $phase; there are $Prepare and $Recover")
    RecoverySpec(
      phase,
      Workload.named(spec.field("workload").asText),
      spec.field("partitions").asInt,
      Contender.named(spec.field("contender").asText),
      spec.field("root").asText,
      spec.field("output").asText,
      spec.delays,
      spec.field("stores").asInt,
      spec.field("batchesBefore").asInt,
      spec.field("batchesSince").asInt,
      spec.texts("confs")
    )
  }
}
