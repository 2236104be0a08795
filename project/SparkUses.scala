import scala.collection.mutable

import org.objectweb.asm._
import sbt._
import sbt.io.Using

/**
 * What compiled classes use of Spark, so that the jar can look whether a Spark that it was not compiled against has it.
 *
 * A line each: `uses CLASS NAME DESCRIPTOR` for a method or a field, and `extends CLASS` for a class of ours that has one of
 * Spark's above it, however far. Names are those of the JVM's class files.
 */
object SparkUses {
  private val Spark = "org/apache/spark/"
  private val Ours = "org/apache/spark/sql/execution/streaming/state/dstl/"

  def in(classes: Seq[File]): Seq[String] = {
    val declared = mutable.HashMap.empty[String, mutable.Set[String]]
    val used = mutable.TreeSet.empty[(String, String, String)]
    val above = mutable.TreeMap.empty[String, Seq[String]]
    classes.foreach { file =>
      Using.fileInputStream(file)(in => new ClassReader(in).accept(new Uses(declared, used, above), 0))
    }
    def isBelowSparks(name: String): Boolean = isSparks(name) || above.get(name).exists(_.exists(isBelowSparks))
    val inherited = used.filterNot { case (owner, name, descriptor) =>
      declared.get(owner).exists(_(name + descriptor))
    }
    inherited.iterator.map { case (owner, name, descriptor) => s"uses $owner $name $descriptor" }.toSeq ++
      above.keysIterator.filter(name => !isSparks(name) && isBelowSparks(name)).map(name => s"extends $name")
  }

  private def isSparks(name: String): Boolean = name.startsWith(Spark) && !name.startsWith(Ours)

  private final class Uses(
      declared: mutable.Map[String, mutable.Set[String]],
      used: mutable.Set[(String, String, String)],
      above: mutable.Map[String, Seq[String]]
  ) extends ClassVisitor(Opcodes.ASM9) {
    private var current = ""

    override def visit(
        version: Int,
        access: Int,
        name: String,
        signature: String,
        superclass: String,
        interfaces: Array[String]
    ): Unit = {
      current = name
      declared.put(name, mutable.HashSet.empty): Unit
      if ((access & Opcodes.ACC_INTERFACE) == 0) above.put(name, superclass +: interfaces): Unit
    }

    private def note(owner: String, name: String, descriptor: String): Unit =
      if (owner.startsWith(Spark)) used += ((owner, name, descriptor)): Unit

    override def visitField(
        access: Int,
        name: String,
        descriptor: String,
        signature: String,
        value: Any
    ): FieldVisitor = {
      declared(current) += name + descriptor
      null
    }

    override def visitMethod(
        access: Int,
        name: String,
        descriptor: String,
        signature: String,
        exceptions: Array[String]
    ): MethodVisitor = {
      declared(current) += name + descriptor
      new MethodVisitor(Opcodes.ASM9) {
        override def visitFieldInsn(opcode: Int, owner: String, name: String, descriptor: String): Unit =
          note(owner, name, descriptor)

        override def visitMethodInsn(opcode: Int, owner: String, name: String, descriptor: String, isI: Boolean): Unit =
          note(owner, name, descriptor)

        override def visitInvokeDynamicInsn(name: String, descriptor: String, by: Handle, arguments: AnyRef*): Unit =
          arguments.foreach {
            case handle: Handle => note(handle.getOwner, handle.getName, handle.getDesc)
            case _ =>
          }
      }
    }
  }
}
