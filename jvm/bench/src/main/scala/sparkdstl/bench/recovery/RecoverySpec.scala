package sparkdstl.bench.recovery

import java.io.File

import sparkdstl.bench.{Contender, RequestDelays, SpecFile, Workload}

/**
 * What one process of the recovery benchmark does.
 *
 * @param file          where it was read
 * @param phase         `prepare`, `recover` or `lose`
 * @param root          a directory of its own, for the checkpoints
 * @param delays        of the storage while it recovers
 * @param stores        of all partitions
 * @param batchesBefore that were run when the newest snapshots were taken
 * @param ticksBefore   that each of these takes as its input; all others take one
 * @param batchesSince  that were run after that
 * @param batchesWarm   that are run in the process that then loses an executor
 * @param asConfigured  whether the log takes snapshots by its own defaults in the batches since; else it takes none
 * @param confs         further SQL configurations
 */
final case class RecoverySpec(
    file: File,
    phase: String,
    workload: Workload,
    partitions: Int,
    contender: Contender,
    root: String,
    output: String,
    delays: Option[RequestDelays],
    stores: Int,
    batchesBefore: Int,
    ticksBefore: Int,
    batchesSince: Int,
    batchesWarm: Int,
    asConfigured: Boolean,
    confs: Map[String, String]
) {

  /** What a batch takes as its input. */
  def ticks(batch: Int): Range = {
    val first = math.min(batch, batchesBefore) * ticksBefore + math.max(0, batch - batchesBefore)
    first until first + (if (batch < batchesBefore) ticksBefore else 1)
  }
}

object RecoverySpec {
  val Prepare = "prepare"
  val Recover = "recover"
  val Lose = "lose"

  /** @throws IllegalArgumentException naming the field that is missing or wrong */
  def read(file: File): RecoverySpec = {
    val spec = new SpecFile(file)
    val phase = spec.field("phase").asText
    val phases = Seq(Prepare, Recover, Lose)
    if (!phases.contains(phase))
      throw new IllegalArgumentException(s"no phase is named $phase; there are ${phases.mkString(", ")}")
    RecoverySpec(
      file,
      phase,
      Workload.named(spec.field("workload").asText),
      spec.field("partitions").asInt,
      Contender.named(spec.field("contender").asText),
      spec.field("root").asText,
      spec.field("output").asText,
      spec.delays,
      spec.field("stores").asInt,
      spec.field("batchesBefore").asInt,
      spec.field("ticksBefore").asInt,
      spec.field("batchesSince").asInt,
      spec.field("batchesWarm").asInt,
      spec.field("asConfigured").asBoolean,
      spec.texts("confs")
    )
  }
}
