package sparkdstl.bench.growth

import java.io.File

import sparkdstl.bench.{Contender, SpecFile, Workload}

/**
 * What one process of the growth benchmark does: one contender's query, batch after batch.
 *
 * @param root         a directory of its own, for the checkpoint
 * @param batches      to run
 * @param periodMillis from the start of one batch to that of the next, unless a batch takes longer
 * @param sampleEvery  so many batches what is stored is counted
 * @param heapEvery    so many samples garbage is collected, and what stays is measured
 * @param confs        further SQL configurations
 */
final case class GrowthSpec(
    workload: Workload,
    partitions: Int,
    contender: Contender,
    root: String,
    output: String,
    batches: Int,
    periodMillis: Long,
    sampleEvery: Int,
    heapEvery: Int,
    confs: Map[String, String]
)

object GrowthSpec {

  /** @throws IllegalArgumentException naming the field that is missing or wrong */
  def read(file: File): GrowthSpec = {
    val spec = new SpecFile(file)
    GrowthSpec(
      Workload.named(spec.field("workload").asText),
      spec.field("partitions").asInt,
      Contender.named(spec.field("contender").asText),
      spec.field("root").asText,
      spec.field("output").asText,
      spec.field("batches").asInt,
      spec.field("periodMs").asLong,
      spec.field("sampleEvery").asInt,
      spec.field("heapEvery").asInt,
      spec.texts("confs")
    )
  }
}
