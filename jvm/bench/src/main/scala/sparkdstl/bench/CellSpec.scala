package sparkdstl.bench

import java.io.File

import scala.jdk.CollectionConverters._

/**
 * What one process of the benchmark measures: one workload on a number of partitions, by some contenders.
 *
 * @param mode       `turns`: contenders run some batches each in turn; `endless`: input is always waiting; `paced`: a batch
 *                   begins every `intervalMs`
 * @param root       a directory of its own, for the checkpoints
 * @param delays     of the storage; local disk, by Spark's own file system, if `None`
 * @param warmup     batches of each contender that are not counted
 * @param rounds     batches of each contender that are
 * @param turn       batches that a contender runs before it is another's turn
 * @param stalls     by round, for how many milliseconds storage answers nobody from the start of each batch on
 * @param trace      whether the paths of a batch's requests are recorded
 * @param confs      further SQL configurations, for all contenders
 */
final case class CellSpec(
    mode: String,
    workload: Workload,
    partitions: Int,
    contenders: Seq[Contender],
    root: String,
    output: String,
    delays: Option[RequestDelays],
    warmup: Int,
    rounds: Int,
    turn: Int,
    intervalMs: Long,
    stalls: Map[Int, Long],
    trace: Boolean,
    confs: Map[String, String]
) {
  def checkpoint(contender: Contender): String =
    if (delays.isEmpty) s"$root/${contender.name}" else s"${DelayedFileSystem.Scheme}://$root/${contender.name}"
}

object CellSpec {

  /** @throws IllegalArgumentException naming the field that is missing or wrong */
  def read(file: File): CellSpec = {
    val spec = new SpecFile(file)
    CellSpec(
      spec.field("mode").asText,
      Workload.named(spec.field("workload").asText),
      spec.field("partitions").asInt,
      spec.field("contenders").elements.asScala.map(name => Contender.named(name.asText)).toSeq,
      spec.field("root").asText,
      spec.field("output").asText,
      spec.delays,
      spec.field("warmup").asInt,
      spec.field("rounds").asInt,
      spec.field("turn").asInt,
      spec.field("intervalMs").asLong,
      spec.texts("stalls").map { case (round, millis) => round.toInt -> millis.toLong },
      spec.field("trace").asBoolean,
      spec.texts("confs")
    )
  }
}
