package sparkdstl.bench

import java.io.File

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * What one process of the benchmark measures: one workload on a number of partitions, by some contenders.
 *
 * @param mode       `turns`: contenders run one batch each in turn; `endless`: input is always waiting; `paced`: a batch
 *                   begins every `intervalMs`
 * @param root       a directory of its own, for the checkpoints
 * @param delays     of the storage; local disk, by Spark's own file system, if `None`
 * @param warmup     batches of each contender that are not counted
 * @param rounds     batches of each contender that are
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
    val node = new ObjectMapper().readTree(file)
    def field(name: String): JsonNode =
      Option(node.get(name)).getOrElse(throw new IllegalArgumentException(s"$file has no field $name"))
    CellSpec(
      field("mode").asText,
      Workload.named(field("workload").asText),
      field("partitions").asInt,
      field("contenders").elements.asScala.map(name => Contender.named(name.asText)).toSeq,
      field("root").asText,
      field("output").asText,
      Option(field("delays")).filterNot(_.isNull).map(delays),
      field("warmup").asInt,
      field("rounds").asInt,
      field("intervalMs").asLong,
      texts(field("stalls")).map { case (round, millis) => round.toInt -> millis.toLong },
      field("trace").asBoolean,
      texts(field("confs"))
    )
  }

  private def delays(node: JsonNode): RequestDelays = RequestDelays(
    node.get("medianMs").asDouble,
    node.get("p99Ms").asDouble,
    node.get("tailRatio").asDouble,
    node.get("tailMs").asDouble,
    node.get("bytesPerSecond").asLong,
    node.get("seed").asLong
  )

  private def texts(node: JsonNode): Map[String, String] =
    node.properties.asScala.map(entry => entry.getKey -> entry.getValue.asText).toMap
}
